// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {ICommittee} from "../interfaces/ICommittee.sol";
import {Signatures} from "./Signatures.sol";

/// @title k of n signatures of a committee that is known by its hash; docs/protocol.md 5.
library Attestation {
    uint256 private constant MEMBER_BYTES = 20;
    /// @dev index:1 r:32 vs:32.
    uint256 private constant SIGNATURE_BYTES = 65;

    /// @notice Reverts unless the attestation carries exactly `threshold` signatures of distinct members over the digest.
    /// @param committeeHash Of the committee that must have signed, in this epoch.
    function check(bytes calldata attestation, bytes32 committeeHash, uint64 epoch, bytes32 digest) internal view {
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
                address member;
                bytes calldata signature;
                // The index is compared before anything follows from what is read by it.
                assembly ("memory-safe") {
                    let entry := add(attestation.offset, add(signatures, mul(SIGNATURE_BYTES, i)))
                    index := byte(0, calldataload(entry))
                    signature.offset := add(entry, 1)
                    signature.length := sub(SIGNATURE_BYTES, 1)
                    member := shr(96, calldataload(add(add(attestation.offset, 2), mul(MEMBER_BYTES, index))))
                }
                if (index < following || index >= memberCount) revert ICommittee.SignersNotAscending(i);
                following = index + 1;
                // No member is the zero address, which stands for an invalid signature.
                if (Signatures.signerOf(digest, signature) != member) revert ICommittee.SignatureNotMembers(member);
            }
        }
    }

    /// @notice keccak256(0x05 ‖ epoch(8) ‖ threshold(1) ‖ memberCount(1) ‖ members(20 each)).
    /// @param thresholdAndMembers As an attestation begins.
    function hashCommittee(uint64 epoch, bytes memory thresholdAndMembers) internal pure returns (bytes32 hash) {
        assembly ("memory-safe") {
            // The prefix takes the place of the length for as long as it is hashed.
            let length := mload(thresholdAndMembers)
            mstore(thresholdAndMembers, or(shl(64, 5), epoch))
            hash := keccak256(add(thresholdAndMembers, 23), add(length, 9))
            mstore(thresholdAndMembers, length)
        }
    }
}
