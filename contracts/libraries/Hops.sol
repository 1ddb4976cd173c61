// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {IVaultProofs} from "../interfaces/IVaultProofs.sol";
import {SLOT_MASK} from "../interfaces/Model.sol";
import {StateProof} from "./StateProof.sol";
import {TransferData} from "./TransferData.sol";

/// @title Committed records of transfers with their proofs, one behind the other; docs/protocol.md
/// 10.
/// @dev The parts that are hashed together lie together. Arithmetic is unchecked: every number is
/// at most a length of calldata, or masked.
library Hops {
    struct Hop {
        /// @dev The vault that the record makes: its place is the leaf's.
        uint64 outId;
        /// @dev Whether that is the change of a split, and not the payee's vault.
        bool isChange;
        /// @dev Units of the payee; 0 for the whole rest.
        uint64 amount;
        /// @dev The payee; the zero address burns.
        address to;
        uint64 deadline;
        /// @dev EIP-712's hash of all transfers of the group.
        bytes32 list;
        /// @dev 64 bytes; zeros for an approved group.
        bytes32 r;
        bytes32 vs;
        /// @dev The hash of the batch's header.
        bytes32 headerHash;
        uint64 committedAt;
    }

    /// @dev outId(8) part(1) amount(8) to(20) deadline(4) list(32) signature(64) header(52)
    /// height(1).
    uint256 private constant HOP_BYTES = 190;
    uint256 private constant AMOUNT = 9;
    uint256 private constant AUTH = 37;
    uint256 private constant AUTH_BYTES = 100;
    uint256 private constant HEADER = 137;
    uint256 private constant HEADER_BYTES = 52;
    uint256 private constant COUNT = 169;
    uint256 private constant HEIGHT = 189;

    /// @notice The hop at an offset, and the offset behind it. Reverts unless the batch of its
    /// header holds it as a record of this vault.
    /// @dev Only this contract hashes the leaves of a transfer batch, whose root has a kind of its
    /// own. So each leaf is a record that has set the bit of its vault.
    function read(
        bytes calldata hops,
        uint256 offset,
        uint64 inId
    ) internal pure returns (Hop memory hop, uint256 end) {
        unchecked {
            uint256 place;
            bytes32[] calldata siblings;
            uint256 head;
            uint256 count;
            assembly ("memory-safe") {
                place := add(hops.offset, offset)
                head := calldataload(place)
                siblings.offset := add(place, HOP_BYTES)
                siblings.length := byte(0, calldataload(add(place, HEIGHT)))
                count := calldataload(add(place, COUNT))
            }
            end = offset + HOP_BYTES + (siblings.length << 5);
            hop.outId = uint64(head >> 192);
            hop.isChange = (head >> 184) & 0xff != 0;
            hop.amount = uint64(_word(place + AMOUNT) >> 192);
            hop.to = address(uint160(_word(place + AMOUNT + 8) >> 96));
            hop.deadline = uint64(_word(place + AUTH) >> 224);
            (hop.list, hop.r, hop.vs) = (
                bytes32(_word(place + AUTH + 4)),
                bytes32(_word(place + AUTH + 36)),
                bytes32(_word(place + AUTH + 68))
            );
            hop.committedAt = uint64(count >> 160);
            count >>= 224;
            bytes32 item = TransferData.itemOf(inId, hop.amount, hop.to);
            bytes32 leaf;
            bytes32 headerHash;
            assembly ("memory-safe") {
                let free := mload(0x40)
                mstore8(free, 4)
                calldatacopy(add(free, 1), add(place, HEADER), HEADER_BYTES)
                headerHash := keccak256(free, add(HEADER_BYTES, 1))
                calldatacopy(free, add(place, AUTH), AUTH_BYTES)
                mstore(add(free, 42), keccak256(free, AUTH_BYTES))
                mstore(add(free, 10), item)
                // 0x08 ‖ outId(8) ‖ part(1)
                mstore8(free, 8)
                calldatacopy(add(free, 1), place, 9)
                leaf := keccak256(free, 74)
            }
            hop.headerHash = headerHash;
            uint256 slot = hop.outId & SLOT_MASK;
            bool proven =
                end <= hops.length &&
                    slot < count &&
                    StateProof.isHeight(siblings.length, count) &&
                    TransferData.batchRoot(StateProof.fold(leaf, slot, siblings)) ==
                        bytes32(_word(place + HEADER));
            if (!proven) revert IVaultProofs.ProofInvalid(inId);
        }
    }

    function _word(uint256 offset) private pure returns (uint256 word) {
        assembly ("memory-safe") {
            word := calldataload(offset)
        }
    }
}
