// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {ICommits} from "../interfaces/ICommits.sol";
import {Mode} from "../interfaces/Model.sol";
import {Attestation} from "../libraries/Attestation.sol";
import {StateProof} from "../libraries/StateProof.sol";
import {Roles} from "./Roles.sol";
import {SettlementState} from "./SettlementState.sol";
import {TypedData} from "./TypedData.sol";

/// @title How a batch of any kind is appended to the state.
abstract contract Appending is Roles, SettlementState, TypedData {
    /// @dev This is no authentication. Only the sender of the transaction has the data in the
    /// transaction's input.
    function _requirePlainAccount() internal view {
        // solhint-disable-next-line avoid-tx-origin
        if (msg.sender != tx.origin || msg.sender.code.length != 0)
            revert ICommits.NotPlainAccount(msg.sender);
    }

    function _beforeCommit(
        bytes32 previous,
        Mode mode,
        uint64 batchNumber
    ) internal view onlyOperator returns (uint256 head) {
        head = _head;
        if ((head >> PAUSED) & 1 == 1) revert ICommits.CommittingPaused();
        uint64 expected = uint32(head >> (uint256(mode) << 5));
        if (batchNumber != expected) revert ICommits.BatchNumberMismatch(expected, batchNumber);
        // With numbers alone, two operators with different histories could commit in turns.
        if (previous != _history) revert ICommits.HistoryMismatch(_history, previous);
        // The last leaf stays empty, so that the frontier always fits and a count is unambiguous.
        if (batchNumber == type(uint32).max) revert ICommits.StateFull();
    }

    /// @dev Reverts unless the present committee has signed the message.
    function _checkAttestation(
        bytes32 message,
        uint64 epoch,
        bytes calldata attestation
    ) internal view {
        Attestation.check(attestation, _committeeHash, epoch, _digestOf(message));
    }

    function _append(
        uint256 head,
        bytes32 previous,
        Mode mode,
        uint64 batchNumber,
        bytes32 batchRoot,
        uint32 vaultCount,
        bytes32 dataHash
    ) internal {
        unchecked {
            uint64 committedAt = uint64(block.timestamp);
            uint64 sequence = uint64(head >> SEQUENCE);
            _headers[mode][batchNumber] = StateProof.headerHash(
                batchRoot,
                vaultCount,
                committedAt,
                sequence
            );
            bytes32 root = StateProof.stateLeaf(batchNumber, vaultCount, dataHash, batchRoot);
            _history = StateProof.nextHistory(previous, mode, root);
            // The new leaf completes one subtree for each trailing 1 bit of its position. Only the
            // root of the largest one is kept.
            bytes32[32] storage frontier = _frontier[uint8(mode)];
            uint256 h;
            for (; (batchNumber >> h) & 1 == 1; ++h) root = StateProof.node(frontier[h], root);
            frontier[h] = root;
            // No count overflows into its neighbour: {_beforeCommit} stops each one at 2^32 - 1.
            _head = head + (1 << (uint256(mode) << 5)) + (1 << SEQUENCE);
            emit ICommits.BatchCommitted(
                mode,
                batchNumber,
                batchRoot,
                vaultCount,
                dataHash,
                committedAt,
                sequence
            );
        }
    }
}
