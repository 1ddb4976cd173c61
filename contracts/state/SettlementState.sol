// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {ICommittee} from "../interfaces/ICommittee.sol";
import {IOperatorRoles} from "../interfaces/IOperatorRoles.sol";
import {Issuers} from "./Issuers.sol";

/// @title The storage that the settlement contract and its {Administration} share.
/// @dev Both inherit this first, so that their storage layouts begin alike.
abstract contract SettlementState is Issuers {
    uint256 internal constant SEQUENCE = 64;
    uint256 internal constant EPOCH = 128;
    uint256 internal constant PAUSED = 192;

    /// @dev One word, because every commit reads and writes it: count of validium batches (bits 0 to 31), of rollup
    /// batches (32 to 63), sequence of the next commit (64 to 127), the committee's epoch (128 to 191), whether
    /// committing is paused (192).
    uint256 internal _head;

    /// @inheritdoc ICommittee
    function committee() external view returns (bytes32 committeeHash, uint64 epoch) {
        return (_committeeHash, uint64(_head >> EPOCH));
    }

    /// @inheritdoc IOperatorRoles
    function pauseCommits(bool paused) external virtual onlyAdminOrGuardian {
        _head = (_head & ~(1 << PAUSED)) | (paused ? 1 << PAUSED : 0);
        emit CommitsPaused(paused);
    }

    function _nextSequence() internal view override returns (uint64) {
        return uint64(_head >> SEQUENCE);
    }

    function _nextEpoch() internal override returns (uint64) {
        _head += 1 << EPOCH;
        return uint64(_head >> EPOCH);
    }
}
