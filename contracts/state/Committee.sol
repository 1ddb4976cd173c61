// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {AccessControl} from "@openzeppelin/contracts/access/AccessControl.sol";
import {ICommittee} from "../interfaces/ICommittee.sol";
import {Attestation} from "../libraries/Attestation.sol";
import {GUARDIAN} from "./Roles.sol";

/// @title The data availability committee: k of n plain accounts, kept as one hash.
abstract contract CommitteeState {
    /// @dev So many fit the constructor's input beside the code.
    uint256 private constant MAX_MEMBERS = 64;

    bytes32 internal _committeeHash;
    bytes32 internal _scheduledCommittee;
    uint64 internal _committeeActiveFrom;

    function _setCommittee(address[] memory members, uint8 threshold, uint64 epoch) internal {
        _checkCommittee(members, threshold);
        bytes memory packed;
        for (uint256 i; i < members.length; ++i) packed = abi.encodePacked(packed, members[i]);
        _committeeHash = Attestation.hashCommittee(
            epoch,
            abi.encodePacked(threshold, uint8(members.length), packed)
        );
        emit ICommittee.CommitteeChanged(epoch, threshold, members);
    }

    function _checkCommittee(address[] memory members, uint8 threshold) internal pure {
        if (threshold == 0 || threshold > members.length || members.length > MAX_MEMBERS) {
            revert ICommittee.CommitteeInvalid(members.length, threshold);
        }
        address previous;
        for (uint256 i; i < members.length; ++i) {
            if (members[i] <= previous) revert ICommittee.CommitteeNotAscending(i);
            previous = members[i];
        }
    }
}

/// @title How the committee is replaced.
abstract contract Committee is ICommittee, AccessControl, CommitteeState {
    bytes32 public constant GUARDIAN_ROLE = GUARDIAN;

    /// @inheritdoc ICommittee
    function scheduleCommittee(
        address[] calldata members,
        uint8 threshold
    ) external onlyRole(DEFAULT_ADMIN_ROLE) {
        _checkCommittee(members, threshold);
        _scheduledCommittee = keccak256(abi.encode(members, threshold));
        _committeeActiveFrom = uint64(block.timestamp) + _changeDelay();
        emit CommitteeScheduled(_committeeActiveFrom, threshold, members);
    }

    /// @inheritdoc ICommittee
    function activateCommittee(address[] calldata members, uint8 threshold) external {
        uint64 activeFrom = _committeeActiveFrom;
        if (activeFrom == 0 || block.timestamp < activeFrom) revert ChangeNotDue(activeFrom);
        if (_scheduledCommittee != keccak256(abi.encode(members, threshold)))
            revert CommitteeNotScheduled();
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

    function _changeDelay() internal view virtual returns (uint64);

    /// @dev Raises the epoch. It shares a slot with the counts, which each commit reads anyway.
    function _nextEpoch() internal virtual returns (uint64);

    modifier onlyAdminOrGuardian() {
        if (!hasRole(DEFAULT_ADMIN_ROLE, msg.sender)) _checkRole(GUARDIAN_ROLE);
        _;
    }
}
