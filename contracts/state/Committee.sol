// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {AccessControl} from "@openzeppelin/contracts/access/AccessControl.sol";
import {EIP712} from "@openzeppelin/contracts/utils/cryptography/EIP712.sol";
import {ICommittee} from "../interfaces/ICommittee.sol";
import {DelayTooLong, MAX_DELAY} from "../interfaces/Model.sol";
import {Attestation} from "../libraries/Attestation.sol";
import {Messages} from "../libraries/Messages.sol";

/// @title The data availability committee: k of n plain accounts, kept as one hash.
abstract contract Committee is ICommittee, AccessControl, EIP712 {
    bytes32 public constant GUARDIAN_ROLE = keccak256("GUARDIAN");

    /// @inheritdoc ICommittee
    uint64 public immutable changeDelay;

    bytes32 internal _committeeHash;
    bytes32 private _scheduledCommittee;
    uint64 private _committeeActiveFrom;

    constructor(uint64 changeDelay_) {
        if (changeDelay_ > MAX_DELAY) revert DelayTooLong(changeDelay_);
        changeDelay = changeDelay_;
    }

    /// @inheritdoc ICommittee
    function scheduleCommittee(address[] calldata members, uint8 threshold) external virtual onlyRole(DEFAULT_ADMIN_ROLE) {
        _checkCommittee(members, threshold);
        _scheduledCommittee = keccak256(abi.encode(members, threshold));
        _committeeActiveFrom = uint64(block.timestamp) + changeDelay;
        emit CommitteeScheduled(_committeeActiveFrom, threshold, members);
    }

    /// @inheritdoc ICommittee
    function activateCommittee(address[] calldata members, uint8 threshold) external virtual {
        uint64 activeFrom = _committeeActiveFrom;
        if (activeFrom == 0 || block.timestamp < activeFrom) revert ChangeNotDue(activeFrom);
        if (_scheduledCommittee != keccak256(abi.encode(members, threshold))) revert CommitteeNotScheduled();
        delete _scheduledCommittee;
        delete _committeeActiveFrom;
        _setCommittee(members, threshold, _nextEpoch());
    }

    /// @inheritdoc ICommittee
    function cancelCommittee() external virtual onlyAdminOrGuardian {
        delete _scheduledCommittee;
        delete _committeeActiveFrom;
        emit CommitteeScheduled(0, 0, new address[](0));
    }

    /// @dev Raises the epoch. It shares a slot with the counts, which each commit reads anyway.
    function _nextEpoch() internal virtual returns (uint64);

    function _setCommittee(address[] memory members, uint8 threshold, uint64 epoch) internal {
        _checkCommittee(members, threshold);
        bytes memory packed;
        for (uint256 i; i < members.length; ++i) packed = abi.encodePacked(packed, members[i]);
        _committeeHash = Attestation.hashCommittee(epoch, abi.encodePacked(threshold, uint8(members.length), packed));
        emit CommitteeChanged(epoch, threshold, members);
    }

    /// @dev Reverts unless the present committee has signed the batch after this history.
    function _checkAttestation(
        bytes32 previous,
        uint64 batchNumber,
        bytes32 batchRoot,
        uint32 vaultCount,
        bytes32 dataHash,
        uint64 epoch,
        bytes calldata attestation
    ) internal view {
        bytes32 digest =
            _hashTypedDataV4(Messages.validiumBatch(previous, batchNumber, batchRoot, vaultCount, dataHash, epoch));
        Attestation.check(attestation, _committeeHash, epoch, digest);
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

    modifier onlyAdminOrGuardian() {
        if (!hasRole(DEFAULT_ADMIN_ROLE, msg.sender)) _checkRole(GUARDIAN_ROLE);
        _;
    }
}
