// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {AccessControl} from "@openzeppelin/contracts/access/AccessControl.sol";
import {IAccessControl} from "@openzeppelin/contracts/access/IAccessControl.sol";

bytes32 constant GUARDIAN = keccak256("GUARDIAN");
bytes32 constant OPERATOR = keccak256("OPERATOR");

/// @title The roles, as a commit reads them.
/// @dev {Administration} has OpenZeppelin's AccessControl in this place of the storage, and changes
/// them.
abstract contract Roles {
    mapping(bytes32 role => AccessControl.RoleData) private _roles;

    /// @dev Only for the constructor, and once for each role.
    function _grantFirst(bytes32 role, address account) internal {
        _roles[role].hasRole[account] = true;
        emit IAccessControl.RoleGranted(role, account, msg.sender);
    }

    modifier onlyOperator() {
        if (!_roles[OPERATOR].hasRole[msg.sender]) {
            revert IAccessControl.AccessControlUnauthorizedAccount(msg.sender, OPERATOR);
        }
        _;
    }
}
