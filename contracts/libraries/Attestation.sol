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
        uint256 threshold = uint8(attestation[0]);
        uint256 memberCount = uint8(attestation[1]);
        uint256 signatures = 2 + memberCount * MEMBER_BYTES;
        if (attestation.length != signatures + threshold * SIGNATURE_BYTES) {
            revert ICommittee.AttestationMalformed(attestation.length);
        }
        if (hashCommittee(epoch, attestation[:signatures]) != committeeHash) revert ICommittee.CommitteeMismatch(epoch);
        uint256 following;
        for (uint256 i; i < threshold; ++i) {
            bytes calldata entry = attestation[signatures + i * SIGNATURE_BYTES:signatures + (i + 1) * SIGNATURE_BYTES];
            uint256 index = uint8(entry[0]);
            if (index < following || index >= memberCount) revert ICommittee.SignersNotAscending(i);
            following = index + 1;
            address member = address(bytes20(attestation[2 + index * MEMBER_BYTES:2 + (index + 1) * MEMBER_BYTES]));
            (address signer, ECDSA.RecoverError fault,) = ECDSA.tryRecover(digest, bytes32(entry[1:33]), bytes32(entry[33:65]));
            if (fault != ECDSA.RecoverError.NoError || signer != member) revert ICommittee.SignatureNotMembers(member);
        }
    }

    /// @param thresholdAndMembers As an attestation begins: threshold, number of members, members.
    function hashCommittee(uint64 epoch, bytes memory thresholdAndMembers) internal pure returns (bytes32) {
        return keccak256(abi.encodePacked(uint8(5), epoch, thresholdAndMembers));
    }
}
