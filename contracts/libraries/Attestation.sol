// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {ICommittee} from "../interfaces/ICommittee.sol";
import {Signatures} from "./Signatures.sol";

/// @title The check of k of n signatures of a committee, which the contract knows by its hash;
/// docs/protocol.md 5.
library Attestation {
    uint256 private constant MEMBER_BYTES = 20;
    /// @dev r:32 vs:32, EIP-2098.
    uint256 private constant SIGNATURE_BYTES = 64;

    /// @notice Reverts unless the attestation carries exactly `threshold` signatures of distinct
    /// members over the digest.
    /// @dev A signature yields its member, and the hash binds each member to its place. So a
    /// signature of another message or by somebody else makes another committee.
    /// @param attestation threshold:u8 memberCount:u8, then for each member either 0x00 member:20
    /// or 0x01 r:32 vs:32.
    /// @param committeeHash Hash of the committee of this epoch, which must have signed.
    function check(
        bytes calldata attestation,
        bytes32 committeeHash,
        uint64 epoch,
        bytes32 digest
    ) internal view {
        unchecked {
            bytes memory committee;
            uint256 members;
            uint256 missing;
            uint256 forms;
            uint256 from;
            uint256 to;
            // Reads past the end are refused by the check of the length below.
            assembly ("memory-safe") {
                let head := calldataload(attestation.offset)
                missing := byte(0, head)
                members := byte(1, head)
                committee := mload(0x40)
                let size := add(2, mul(members, MEMBER_BYTES))
                // The last member is written as a whole word.
                mstore(0x40, add(committee, add(size, 0x40)))
                mstore(committee, size)
                mstore(add(committee, 0x20), head)
                from := add(attestation.offset, 2)
                to := add(committee, 0x22)
            }
            for (; members != 0; --members) {
                uint256 form;
                bytes calldata signature;
                address member;
                assembly ("memory-safe") {
                    form := byte(0, calldataload(from))
                    signature.offset := add(from, 1)
                    signature.length := SIGNATURE_BYTES
                    member := shr(96, calldataload(signature.offset))
                }
                // The zero address, which is no member, stands for an invalid signature.
                if (form != 0) member = Signatures.signerOf(digest, signature);
                forms |= form;
                missing -= form;
                assembly ("memory-safe") {
                    mstore(to, shl(96, member))
                    to := add(to, MEMBER_BYTES)
                    from := add(
                        signature.offset,
                        add(MEMBER_BYTES, mul(form, sub(SIGNATURE_BYTES, MEMBER_BYTES)))
                    )
                }
            }
            assembly ("memory-safe") {
                from := sub(from, attestation.offset)
            }
            if (missing != 0 || forms > 1 || from != attestation.length)
                revert ICommittee.AttestationMalformed(attestation.length);
            if (hashCommittee(epoch, committee) != committeeHash)
                revert ICommittee.CommitteeMismatch(epoch);
        }
    }

    /// @notice keccak256(0x05 ‖ epoch(8) ‖ threshold(1) ‖ memberCount(1) ‖ members(20 each)).
    /// @param thresholdAndMembers The first bytes of an attestation.
    function hashCommittee(
        uint64 epoch,
        bytes memory thresholdAndMembers
    ) internal pure returns (bytes32 hash) {
        assembly ("memory-safe") {
            // The prefix replaces the length while the hash is computed.
            let length := mload(thresholdAndMembers)
            mstore(thresholdAndMembers, or(shl(64, 5), epoch))
            hash := keccak256(add(thresholdAndMembers, 23), add(length, 9))
            mstore(thresholdAndMembers, length)
        }
    }
}
