// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {ICommittee} from "../interfaces/ICommittee.sol";
import {Attestation} from "../libraries/Attestation.sol";

/// @title The data availability committee: k of n plain accounts, kept as one hash.
abstract contract CommitteeState {
    bytes32 internal _committeeHash;
    bytes32 internal _scheduledCommittee;
    uint64 internal _committeeActiveFrom;

    function _setCommittee(address[] memory members, uint8 threshold, uint64 epoch) internal {
        _checkCommittee(members, threshold);
        bytes memory packed;
        for (uint256 i; i < members.length; ++i) packed = abi.encodePacked(packed, members[i]);
        _committeeHash = Attestation.hashCommittee(epoch, abi.encodePacked(threshold, uint8(members.length), packed));
        emit ICommittee.CommitteeChanged(epoch, threshold, members);
    }

    function _checkCommittee(address[] memory members, uint8 threshold) internal pure {
        if (threshold == 0 || threshold > members.length || members.length > type(uint8).max) {
            revert ICommittee.CommitteeInvalid(members.length, threshold);
        }
        address previous;
        for (uint256 i; i < members.length; ++i) {
            if (members[i] <= previous) revert ICommittee.CommitteeNotAscending(i);
            previous = members[i];
        }
    }
}
