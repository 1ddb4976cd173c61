// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {ICommittee} from "../interfaces/ICommittee.sol";
import {Signatures} from "./Signatures.sol";

/// @title The check of k of n signatures of a committee, which the contract knows by its hash; docs/protocol.md 5.
library Attestation {
    uint256 private constant MEMBER_BYTES = 20;
    /// @dev index:1 r:32 vs:32.
    uint256 private constant SIGNATURE_BYTES = 65;

    /// @notice Reverts unless the attestation carries exactly `threshold` signatures of distinct members over the
    /// digest.
    /// @param committeeHash Hash of the committee of this epoch, which must have signed.
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
            bytes memory committee;
            uint256 entry;
            assembly ("memory-safe") {
                committee := mload(0x40)
                mstore(0x40, add(add(committee, 32), signatures))
                mstore(committee, signatures)
                calldatacopy(add(committee, 32), attestation.offset, signatures)
                entry := add(attestation.offset, signatures)
            }
            if (hashCommittee(epoch, committee) != committeeHash) revert ICommittee.CommitteeMismatch(epoch);
            uint256 following;
            for (uint256 i; i < threshold; ++i) {
                uint256 index;
                address member;
                bytes calldata signature;
                // The read by the index is used only after the check of the index below.
                assembly ("memory-safe") {
                    index := byte(0, calldataload(entry))
                    signature.offset := add(entry, 1)
                    signature.length := sub(SIGNATURE_BYTES, 1)
                    entry := add(entry, SIGNATURE_BYTES)
                    member := shr(96, calldataload(add(add(attestation.offset, 2), mul(MEMBER_BYTES, index))))
                }
                // An index below `following` wraps around, so this one comparison refuses it too.
                if (index - following >= memberCount - following) revert ICommittee.SignersNotAscending(i);
                following = index + 1;
                // No member is the zero address, which stands for an invalid signature.
                if (Signatures.signerOf(digest, signature) != member) revert ICommittee.SignatureNotMembers(member);
            }
        }
    }

    /// @notice keccak256(0x05 ‖ epoch(8) ‖ threshold(1) ‖ memberCount(1) ‖ members(20 each)).
    /// @param thresholdAndMembers The first bytes of an attestation.
    function hashCommittee(uint64 epoch, bytes memory thresholdAndMembers) internal pure returns (bytes32 hash) {
        assembly ("memory-safe") {
            // The prefix replaces the length while the hash is computed.
            let length := mload(thresholdAndMembers)
            mstore(thresholdAndMembers, or(shl(64, 5), epoch))
            hash := keccak256(add(thresholdAndMembers, 23), add(length, 9))
            mstore(thresholdAndMembers, length)
        }
    }
}
