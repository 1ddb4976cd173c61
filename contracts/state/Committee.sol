// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {AccessControl} from "@openzeppelin/contracts/access/AccessControl.sol";
import {ICommittee} from "../interfaces/ICommittee.sol";
import {DelayTooLong, MAX_DELAY} from "../interfaces/Model.sol";
import {CommitteeState} from "./CommitteeState.sol";
import {GUARDIAN} from "./Roles.sol";

/// @title How the committee is replaced.
abstract contract Committee is ICommittee, AccessControl, CommitteeState {
    bytes32 public constant GUARDIAN_ROLE = GUARDIAN;

    /// @inheritdoc ICommittee
    uint64 public immutable changeDelay;

    constructor(uint64 changeDelay_) {
        if (changeDelay_ > MAX_DELAY) revert DelayTooLong(changeDelay_);
        changeDelay = changeDelay_;
    }

    /// @inheritdoc ICommittee
    function scheduleCommittee(address[] calldata members, uint8 threshold) external onlyRole(DEFAULT_ADMIN_ROLE) {
        _checkCommittee(members, threshold);
        _scheduledCommittee = keccak256(abi.encode(members, threshold));
        _committeeActiveFrom = uint64(block.timestamp) + changeDelay;
        emit CommitteeScheduled(_committeeActiveFrom, threshold, members);
    }

    /// @inheritdoc ICommittee
    function activateCommittee(address[] calldata members, uint8 threshold) external {
        uint64 activeFrom = _committeeActiveFrom;
        if (activeFrom == 0 || block.timestamp < activeFrom) revert ChangeNotDue(activeFrom);
        if (_scheduledCommittee != keccak256(abi.encode(members, threshold))) revert CommitteeNotScheduled();
        delete _scheduledCommittee;
        delete _committeeActiveFrom;
        _setCommittee(members, threshold, _nextEpoch());
    }

    /// @inheritdoc ICommittee
    function cancelCommittee() external onlyAdminOrGuardian {
        delete _scheduledCommittee;
        delete _committeeActiveFrom;
        emit CommitteeScheduled(0, 0, new address[](0));
    }

    /// @dev Raises the epoch. It shares a slot with the counts, which each commit reads anyway.
    function _nextEpoch() internal virtual returns (uint64);

    modifier onlyAdminOrGuardian() {
        if (!hasRole(DEFAULT_ADMIN_ROLE, msg.sender)) _checkRole(GUARDIAN_ROLE);
        _;
    }
}
