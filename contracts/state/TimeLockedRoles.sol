// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {ICommittee} from "../interfaces/ICommittee.sol";
import {IOperatorRoles} from "../interfaces/IOperatorRoles.sol";
import {Committee} from "./Committee.sol";
import {OPERATOR} from "./Roles.sol";
import {SettlementState} from "./SettlementState.sol";

/// @title Operators, and the delay before a new one can act.
/// @dev A new operator or committee is announced `changeDelay` before it can act. A role can be
/// removed at once. No role can change a vault, a past root or a withdrawal.
abstract contract TimeLockedRoles is IOperatorRoles, Committee, SettlementState {
    bytes32 public constant OPERATOR_ROLE = OPERATOR;

    /// @inheritdoc IOperatorRoles
    function scheduleOperator(address operator) external onlyRole(DEFAULT_ADMIN_ROLE) {
        uint64 activeFrom = uint64(block.timestamp) + _changeDelay();
        _scheduledOperator[operator] = activeFrom;
        emit OperatorScheduled(operator, activeFrom);
    }

    /// @inheritdoc IOperatorRoles
    function activateOperator(address operator) external {
        uint64 activeFrom = _scheduledOperator[operator];
        if (activeFrom == 0 || block.timestamp < activeFrom) revert ChangeNotDue(activeFrom);
        delete _scheduledOperator[operator];
        _grantRole(OPERATOR_ROLE, operator);
    }

    /// @inheritdoc IOperatorRoles
    function cancelOperator(address operator) external onlyAdminOrGuardian {
        delete _scheduledOperator[operator];
        emit OperatorScheduled(operator, 0);
    }

    /// @inheritdoc IOperatorRoles
    function revokeOperator(address operator) external onlyAdminOrGuardian {
        _revokeRole(OPERATOR_ROLE, operator);
    }

    /// @inheritdoc IOperatorRoles
    function pauseCommits(bool paused) external onlyAdminOrGuardian {
        _head = (_head & ~(1 << PAUSED)) | (paused ? 1 << PAUSED : 0);
        emit CommitsPaused(paused);
    }

    /// @inheritdoc ICommittee
    function committee() external view returns (bytes32 committeeHash, uint64 epoch) {
        return (_committeeHash, uint64(_head >> EPOCH));
    }

    /// @dev Only {scheduleOperator} and {activateOperator} grant the operator's role.
    function grantRole(bytes32 role, address account) public override onlyRole(DEFAULT_ADMIN_ROLE) {
        if (role == OPERATOR_ROLE) revert OperatorNotTimeLocked();
        _grantRole(role, account);
    }

    /// @dev An account that loses the role loses its announcement too, so that nobody can restore
    /// the role.
    function _revokeRole(bytes32 role, address account) internal override returns (bool) {
        if (role == OPERATOR_ROLE) delete _scheduledOperator[account];
        return super._revokeRole(role, account);
    }

    function _nextEpoch() internal override returns (uint64) {
        _head += 1 << EPOCH;
        return uint64(_head >> EPOCH);
    }
}
