// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {ECDSA} from "@openzeppelin/contracts/utils/cryptography/ECDSA.sol";
import {EIP712} from "@openzeppelin/contracts/utils/cryptography/EIP712.sol";
import {IStateCommitment} from "../interfaces/IStateCommitment.sol";
import {TimeLockedRoles} from "./TimeLockedRoles.sol";

/// @title The data availability committee: k of n plain accounts, kept as one hash.
abstract contract Committee is TimeLockedRoles, EIP712 {
    bytes32 private constant VALIDIUM_BATCH_TYPEHASH = keccak256(
        "ValidiumBatch(uint64 batchNumber,bytes32 batchRoot,uint32 vaultCount,bytes32 dataHash,uint64 epoch)"
    );
    uint256 private constant MEMBER_BYTES = 20;
    uint256 private constant SIGNATURE_BYTES = 65;

    bytes32 internal _committeeHash;
    bytes32 private _scheduledCommittee;
    uint64 private _committeeActiveFrom;

    /// @inheritdoc IStateCommitment
    function scheduleCommittee(address[] calldata members, uint8 threshold) external onlyRole(DEFAULT_ADMIN_ROLE) {
        _checkCommittee(members, threshold);
        _scheduledCommittee = keccak256(abi.encode(members, threshold));
        _committeeActiveFrom = uint64(block.timestamp) + changeDelay;
        emit CommitteeScheduled(_committeeActiveFrom, threshold, members);
    }

    /// @inheritdoc IStateCommitment
    function activateCommittee(address[] calldata members, uint8 threshold) external {
        uint64 activeFrom = _committeeActiveFrom;
        if (activeFrom == 0 || block.timestamp < activeFrom) revert ChangeNotDue(activeFrom);
        if (_scheduledCommittee != keccak256(abi.encode(members, threshold))) revert CommitteeNotScheduled();
        delete _scheduledCommittee;
        delete _committeeActiveFrom;
        _setCommittee(members, threshold, _nextEpoch());
    }

    /// @dev Raises the epoch, which is kept beside the counts that each commit reads anyway.
    function _nextEpoch() internal virtual returns (uint64);

    function _setCommittee(address[] memory members, uint8 threshold, uint64 epoch) internal {
        _checkCommittee(members, threshold);
        bytes memory packed;
        for (uint256 i; i < members.length; ++i) packed = abi.encodePacked(packed, members[i]);
        _committeeHash = _hashCommittee(epoch, abi.encodePacked(threshold, uint8(members.length), packed));
        emit CommitteeChanged(epoch, threshold, members);
    }

    /// @dev Reverts unless the attestation carries exactly `threshold` signatures of distinct members of the present committee.
    function _checkAttestation(
        uint64 batchNumber, bytes32 batchRoot, uint32 vaultCount, bytes32 dataHash, uint64 epoch, bytes calldata attestation
    ) internal view {
        if (attestation.length < 2) revert AttestationMalformed(attestation.length);
        uint256 threshold = uint8(attestation[0]);
        uint256 memberCount = uint8(attestation[1]);
        uint256 signatures = 2 + memberCount * MEMBER_BYTES;
        if (attestation.length != signatures + threshold * SIGNATURE_BYTES) revert AttestationMalformed(attestation.length);
        if (_hashCommittee(epoch, attestation[:signatures]) != _committeeHash) revert CommitteeMismatch(epoch);
        bytes32 digest = _validiumBatchDigest(batchNumber, batchRoot, vaultCount, dataHash, epoch);
        uint256 following;
        for (uint256 i; i < threshold; ++i) {
            bytes calldata entry = attestation[signatures + i * SIGNATURE_BYTES:signatures + (i + 1) * SIGNATURE_BYTES];
            uint256 index = uint8(entry[0]);
            if (index < following || index >= memberCount) revert SignersNotAscending(i);
            following = index + 1;
            address member = address(bytes20(attestation[2 + index * MEMBER_BYTES:2 + (index + 1) * MEMBER_BYTES]));
            (address signer, ECDSA.RecoverError fault,) = ECDSA.tryRecover(digest, bytes32(entry[1:33]), bytes32(entry[33:65]));
            if (fault != ECDSA.RecoverError.NoError || signer != member) revert SignatureNotMembers(member);
        }
    }

    /// @dev What a member signs.
    function _validiumBatchDigest(uint64 batchNumber, bytes32 batchRoot, uint32 vaultCount, bytes32 dataHash, uint64 epoch)
        internal
        view
        returns (bytes32)
    {
        return _hashTypedDataV4(keccak256(abi.encode(VALIDIUM_BATCH_TYPEHASH, batchNumber, batchRoot, vaultCount, dataHash, epoch)));
    }

    function _hashCommittee(uint64 epoch, bytes memory thresholdAndMembers) private pure returns (bytes32) {
        return keccak256(abi.encodePacked(uint8(5), epoch, thresholdAndMembers));
    }

    function _checkCommittee(address[] memory members, uint8 threshold) private pure {
        if (threshold == 0 || threshold > members.length || members.length > type(uint8).max) {
            revert CommitteeInvalid(members.length, threshold);
        }
        address previous;
        for (uint256 i; i < members.length; ++i) {
            if (members[i] <= previous) revert CommitteeNotAscending(i);
            previous = members[i];
        }
    }
}
