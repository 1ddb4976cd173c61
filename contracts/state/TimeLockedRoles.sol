// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {IOperatorRoles} from "../interfaces/IOperatorRoles.sol";
import {Committee} from "./Committee.sol";

/// @title Operators, and the delay before a new one can act.
/// @dev A new operator or committee is announced `changeDelay` before it can act. A role can be removed at once. No
/// role can change a vault, a past root or a withdrawal.
abstract contract TimeLockedRoles is IOperatorRoles, Committee {
    bytes32 public constant OPERATOR_ROLE = keccak256("OPERATOR");

    mapping(address operator => uint64 activeFrom) private _scheduledOperator;

    /// @inheritdoc IOperatorRoles
    function scheduleOperator(address operator) external virtual onlyRole(DEFAULT_ADMIN_ROLE) {
        uint64 activeFrom = uint64(block.timestamp) + changeDelay;
        _scheduledOperator[operator] = activeFrom;
        emit OperatorScheduled(operator, activeFrom);
    }

    /// @inheritdoc IOperatorRoles
    function activateOperator(address operator) external virtual {
        uint64 activeFrom = _scheduledOperator[operator];
        if (activeFrom == 0 || block.timestamp < activeFrom) revert ChangeNotDue(activeFrom);
        delete _scheduledOperator[operator];
        _grantRole(OPERATOR_ROLE, operator);
    }

    /// @inheritdoc IOperatorRoles
    function cancelOperator(address operator) external virtual onlyAdminOrGuardian {
        delete _scheduledOperator[operator];
        emit OperatorScheduled(operator, 0);
    }

    /// @inheritdoc IOperatorRoles
    function revokeOperator(address operator) external virtual onlyAdminOrGuardian {
        _revokeRole(OPERATOR_ROLE, operator);
    }

    /// @dev Only {scheduleOperator} and {activateOperator} grant the operator's role.
    function grantRole(bytes32 role, address account) public virtual override onlyRole(DEFAULT_ADMIN_ROLE) {
        if (role == OPERATOR_ROLE) revert OperatorNotTimeLocked();
        _grantRole(role, account);
    }

    /// @dev An account that loses the role loses its announcement too, so that nobody can restore the role.
    function _revokeRole(bytes32 role, address account) internal override returns (bool) {
        if (role == OPERATOR_ROLE) delete _scheduledOperator[account];
        return super._revokeRole(role, account);
    }
}
