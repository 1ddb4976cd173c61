// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {ECDSA} from "@openzeppelin/contracts/utils/cryptography/ECDSA.sol";
import {ICommittee} from "../interfaces/ICommittee.sol";

/// @title k of n signatures of a committee that is known by its hash; docs/protocol.md 5.
library Attestation {
    uint256 private constant MEMBER_BYTES = 20;
    uint256 private constant SIGNATURE_BYTES = 65;

    /// @notice Reverts unless the attestation carries exactly `threshold` signatures of distinct members over the digest.
    /// @param committeeHash Of the committee that must have signed, in this epoch.
    function check(bytes calldata attestation, bytes32 committeeHash, uint64 epoch, bytes32 digest) internal pure {
        if (attestation.length < 2) revert ICommittee.AttestationMalformed(attestation.length);
        unchecked {
            uint256 threshold;
            uint256 memberCount;
            assembly ("memory-safe") {
                let head := calldataload(attestation.offset)
                threshold := byte(0, head)
                memberCount := byte(1, head)
            }
            uint256 signatures = 2 + memberCount * MEMBER_BYTES;
            if (attestation.length != signatures + threshold * SIGNATURE_BYTES) {
                revert ICommittee.AttestationMalformed(attestation.length);
            }
            if (hashCommittee(epoch, attestation[:signatures]) != committeeHash) revert ICommittee.CommitteeMismatch(epoch);
            uint256 following;
            for (uint256 i; i < threshold; ++i) {
                uint256 index;
                bytes32 r;
                bytes32 vs;
                address member;
                // The index is compared before anything follows from what is read by it.
                assembly ("memory-safe") {
                    let entry := add(attestation.offset, add(signatures, mul(SIGNATURE_BYTES, i)))
                    index := byte(0, calldataload(entry))
                    r := calldataload(add(entry, 1))
                    vs := calldataload(add(entry, 33))
                    member := shr(96, calldataload(add(add(attestation.offset, 2), mul(MEMBER_BYTES, index))))
                }
                if (index < following || index >= memberCount) revert ICommittee.SignersNotAscending(i);
                following = index + 1;
                (address signer, ECDSA.RecoverError fault,) = ECDSA.tryRecover(digest, r, vs);
                if (fault != ECDSA.RecoverError.NoError || signer != member) revert ICommittee.SignatureNotMembers(member);
            }
        }
    }

    /// @param thresholdAndMembers As an attestation begins: threshold, number of members, members.
    function hashCommittee(uint64 epoch, bytes memory thresholdAndMembers) internal pure returns (bytes32) {
        return keccak256(abi.encodePacked(uint8(5), epoch, thresholdAndMembers));
    }
}
