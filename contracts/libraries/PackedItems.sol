// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {Vault} from "../interfaces/Model.sol";

/// @title The packed items of a group of withdrawals: the format of docs/protocol.md 6.
/// @dev Reads first and checks once: a word past an item's end holds other bytes, and the check behind the reads refuses the item.
/// Unchecked: every number here is at most a length of calldata.
library PackedItems {
    /// @notice The items break off, or name a slot that no batch has, at this offset of the group's `items`.
    error ItemsMalformed(uint256 offset);
    /// @notice The item of this vault has unknown flags, or ends early or late.
    error ItemMalformed(uint64 vaultId);

    /// @dev length:u16 slot:u24.
    uint256 private constant FRAME_BYTES = 5;
    uint256 private constant SLOTS = 1 << 20;

    uint256 private constant HAS_RECIPIENT = 1;
    uint256 private constant HAS_AMOUNTS = 2;
    uint256 private constant HAS_SIGNATURE = 4;
    uint256 private constant ALL_FLAGS = 7;

    /// @dev flags:u8 owner:20.
    uint256 private constant HEAD_BYTES = 21;
    uint256 private constant RECIPIENT_BYTES = 20;
    /// @dev amount:u64 quantity:u64.
    uint256 private constant AMOUNTS_BYTES = 16;
    /// @dev deadline:u64 signatureLength:u16.
    uint256 private constant SIGNATURE_HEAD_BYTES = 10;

    /// @notice The item at an offset of a group's items.
    /// @return slot The vault's place in its batch.
    /// @return item What {read} takes.
    /// @return end The offset of the next item.
    function next(bytes calldata items, uint256 offset) internal pure returns (uint64 slot, bytes calldata item, uint256 end) {
        unchecked {
            uint256 frame = _word(items, offset) >> 216;
            slot = uint64(frame & 0xffffff);
            end = offset + FRAME_BYTES + (frame >> 24);
            if (end > items.length || slot >= SLOTS) revert ItemsMalformed(offset);
            item = _slice(items, offset + FRAME_BYTES, frame >> 24);
        }
    }

    /// @notice What one item says of a vault on this chain. Its signature is empty when the vault's owner itself calls.
    function read(bytes calldata item, uint64 vaultId, uint256 assetType)
        internal
        view
        returns (
            Vault memory vault,
            bytes32[] calldata siblings,
            uint64 quantity,
            address recipient,
            uint64 deadline,
            bytes calldata signature
        )
    {
        unchecked {
            uint256 flags = _word(item, 0) >> 248;
            recipient = address(bytes20(bytes32(_word(item, 1))));
            vault.vaultId = vaultId;
            vault.chainId = uint64(block.chainid);
            vault.owner = recipient;
            vault.assetType = assetType;
            vault.amount = 1;
            quantity = 1;
            uint256 cursor = HEAD_BYTES;
            if (flags & HAS_RECIPIENT != 0) {
                recipient = address(bytes20(bytes32(_word(item, cursor))));
                cursor += RECIPIENT_BYTES;
            }
            if (flags & HAS_AMOUNTS != 0) {
                uint256 amounts = _word(item, cursor);
                vault.amount = uint64(amounts >> 192);
                quantity = uint64(amounts >> 128);
                cursor += AMOUNTS_BYTES;
            }
            signature = _slice(item, 0, 0);
            if (flags & HAS_SIGNATURE != 0) {
                uint256 head = _word(item, cursor);
                deadline = uint64(head >> 192);
                cursor += SIGNATURE_HEAD_BYTES;
                signature = _slice(item, cursor, (head >> 176) & 0xffff);
                cursor += signature.length;
            }
            bytes calldata blob = _slice(item, cursor + 1, _word(item, cursor) >> 248);
            cursor += 1 + blob.length;
            if (flags > ALL_FLAGS || cursor > item.length || (item.length - cursor) % 32 != 0) revert ItemMalformed(vaultId);
            vault.blob = blob;
            assembly ("memory-safe") {
                siblings.offset := add(item.offset, cursor)
                siblings.length := shr(5, sub(item.length, cursor))
            }
        }
    }

    function _word(bytes calldata data, uint256 offset) private pure returns (uint256 word) {
        assembly ("memory-safe") {
            word := calldataload(add(data.offset, offset))
        }
    }

    function _slice(bytes calldata data, uint256 offset, uint256 length) private pure returns (bytes calldata slice) {
        assembly ("memory-safe") {
            slice.offset := add(data.offset, offset)
            slice.length := length
        }
    }
}
