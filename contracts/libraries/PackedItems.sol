// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {MAX_BATCH_VAULTS, WithdrawalTerms} from "../interfaces/Model.sol";

/// @title The packed items and lists of a batch of withdrawals: the formats of docs/protocol.md 6.
/// @dev Functions read first and check once. A word past an item's end holds other bytes, and the
/// later check refuses the item. Arithmetic is unchecked: every number is at most a length of
/// calldata.
library PackedItems {
    /// @notice At this offset, the group's `items` are incomplete or name a slot that no batch has.
    error ItemsMalformed(uint256 offset);
    /// @notice The item of this vault has unknown flags, or ends early or late.
    error ItemMalformed(uint64 vaultId);
    /// @notice A list is incomplete or has not 1 to 256 vaults, or an item names no entry of a list
    /// or the entry of another vault.
    error ListMalformed();

    /// @dev An item is authorized by the caller, or by the owner who signed its list. With a list,
    /// this bit above the account is set.
    uint256 internal constant LISTED = 1 << 160;
    /// @dev The quantity that a list names as withdrawn before, above that bit.
    uint256 internal constant BEFORE = 161;
    /// @dev Bit above both: the list's signer has cancelled something.
    uint256 internal constant HAS_CANCELLED = 1 << 225;

    /// @dev length:u16 slot:u24.
    uint256 private constant FRAME_BYTES = 5;
    /// @dev Nine words.
    uint256 private constant TERMS_BYTES = 288;
    /// @dev An item in its own call lies behind the selector, the terms, and three words more.
    uint256 private constant ITEM_OFFSET = 4 + TERMS_BYTES + 3 * 32;

    uint256 private constant HAS_RECIPIENT = 1;
    uint256 private constant HAS_AMOUNTS = 2;
    uint256 private constant ALL_FLAGS = 3;
    /// @dev An item of a list. Of the other flags it can have only {HAS_AMOUNTS}.
    uint256 private constant IS_LISTED = 4;
    /// @dev The first byte of a vault's way, which stands before the item itself.
    uint256 private constant WAY = 8;

    /// @dev {WAY} tip:u64 mintedTo:20 hopsLength:u16 refutationLength:u16, then both.
    uint256 private constant WAY_HEAD_BYTES = 33;
    /// @dev flags:u8 owner:20.
    uint256 private constant HEAD_BYTES = 21;
    uint256 private constant RECIPIENT_BYTES = 20;
    /// @dev amount:u64 quantity:u64.
    uint256 private constant AMOUNTS_BYTES = 16;

    /// @dev An item of a list: flags:u8 list:u8 position:u16.
    uint256 private constant LISTED_HEAD_BYTES = 4;
    uint256 private constant AMOUNT_BYTES = 8;
    /// @dev owner:20 recipient:20 deadline:u64 count:u16.
    uint256 private constant LIST_HEAD_BYTES = 50;
    /// @dev vaultId:u64 withdrawnBefore:u64 quantity:u64.
    uint256 private constant ENTRY_BYTES = 24;
    uint256 private constant MAX_LISTED_VAULTS = 256;

    /// @notice The item at an offset of a group's items.
    /// @return slot The vault's place in its batch.
    /// @return item The bytes that {wayOf} and {read} take.
    /// @return end The offset of the next item.
    function next(
        bytes calldata items,
        uint256 offset
    ) internal pure returns (uint64 slot, bytes calldata item, uint256 end) {
        unchecked {
            uint256 frame = _word(items, offset) >> 216;
            slot = uint64(frame & 0xffffff);
            end = offset + FRAME_BYTES + (frame >> 24);
            if (end > items.length || slot >= MAX_BATCH_VAULTS) revert ItemsMalformed(offset);
            item = _slice(items, offset + FRAME_BYTES, frame >> 24);
        }
    }

    /// @notice Whether an item begins with the records that its vault has come by.
    function hasWay(bytes calldata item) internal pure returns (bool) {
        return _word(item, 0) >> 248 == WAY;
    }

    /// @notice The vault that an item with a way withdraws.
    function tipOf(bytes calldata item) internal pure returns (uint64) {
        return uint64(_word(item, 1) >> 192);
    }

    /// @notice The way in front of an item, and the item itself.
    function split(
        bytes calldata item
    ) internal pure returns (bytes calldata way, bytes calldata rest) {
        unchecked {
            (, , , rest) = wayOf(item);
            way = _slice(item, 0, item.length - rest.length);
        }
    }

    /// @notice The parts of a way, and the item behind it.
    /// @return mintedTo The owner of the minted vault; the item names the owner of the tip.
    function wayOf(
        bytes calldata item
    )
        internal
        pure
        returns (
            address mintedTo,
            bytes calldata hops,
            bytes calldata refutation,
            bytes calldata rest
        )
    {
        unchecked {
            mintedTo = address(bytes20(bytes32(_word(item, 9))));
            uint256 lengths = _word(item, 29) >> 224;
            hops = _slice(item, WAY_HEAD_BYTES, lengths >> 16);
            refutation = _slice(item, WAY_HEAD_BYTES + hops.length, lengths & 0xffff);
            uint256 end = WAY_HEAD_BYTES + hops.length + refutation.length;
            if (end > item.length) revert ItemMalformed(tipOf(item));
            rest = _slice(item, end, item.length - end);
        }
    }

    /// @notice Whether a list of the call authorizes the item.
    function isListed(bytes calldata item) internal pure returns (bool) {
        return (_word(item, 0) >> 248) & IS_LISTED != 0;
    }

    /// @notice Number of the list that a listed item names.
    function listOf(bytes calldata item) internal pure returns (uint256) {
        return (_word(item, 0) >> 240) & 0xff;
    }

    /// @notice Offset of a list in the calldata.
    function placeOf(bytes calldata list) internal pure returns (uint256 place) {
        assembly ("memory-safe") {
            place := list.offset
        }
    }

    /// @notice The owner of a list.
    function ownerOf(bytes calldata list) internal pure returns (address) {
        return address(bytes20(bytes32(_word(list, 0))));
    }

    /// @notice An item without its head, and the authorization that its list gives it.
    /// @param list Offset of the list, which was checked, in the calldata.
    /// @param vaultId The vault that the item withdraws.
    /// @return rest The item without its head.
    /// @return by The list's owner, with {LISTED} and {BEFORE}.
    /// @return amounts The vault's amount, shifted by 64 bits, and the quantity.
    function unlisted(
        bytes calldata item,
        uint256 list,
        uint64 vaultId
    ) internal pure returns (bytes calldata rest, uint256 by, uint256 amounts) {
        bool valid;
        assembly ("memory-safe") {
            let head := calldataload(item.offset)
            let position := and(shr(224, head), 0xffff)
            let entry := calldataload(add(add(list, LIST_HEAD_BYTES), mul(position, ENTRY_BYTES)))
            let amount := 1
            let size := LISTED_HEAD_BYTES
            if and(shr(248, head), HAS_AMOUNTS) {
                amount := shr(192, shl(32, head))
                size := add(size, AMOUNT_BYTES)
            }
            valid := eq(or(shr(248, head), HAS_AMOUNTS), or(IS_LISTED, HAS_AMOUNTS))
            valid := and(valid, iszero(gt(size, item.length)))
            valid := and(
                valid,
                lt(position, shr(240, calldataload(add(list, sub(LIST_HEAD_BYTES, 2)))))
            )
            valid := and(valid, eq(shr(192, entry), vaultId))
            let before := and(shr(128, entry), 0xffffffffffffffff)
            by := or(or(shr(96, calldataload(list)), LISTED), shl(BEFORE, before))
            amounts := or(shl(64, amount), and(shr(64, entry), 0xffffffffffffffff))
            rest.offset := add(item.offset, size)
            rest.length := sub(item.length, size)
        }
        if (!valid) revert ListMalformed();
    }

    /// @notice Calldata for one item: the terms of its group, the vault's way, and the item as
    /// {read} takes it. An item of a list gets the list's owner, recipient and amounts in place of
    /// its head.
    /// @param list Offset of the item's list in the calldata; 0 without a list.
    function callOf(
        bytes4 selector,
        WithdrawalTerms memory terms,
        uint64 vaultId,
        uint256 assetType,
        uint256 by,
        uint256 list,
        uint256 amounts,
        bytes calldata way,
        bytes calldata item
    ) internal pure returns (bytes memory data) {
        assembly ("memory-safe") {
            data := mload(0x40)
            mstore(add(data, 0x20), selector)
            let end := add(data, 0x24)
            mcopy(end, terms, TERMS_BYTES)
            end := add(end, TERMS_BYTES)
            mstore(end, vaultId)
            mstore(add(end, 0x20), assetType)
            mstore(add(end, 0x40), by)
            end := add(end, 0x60)
            calldatacopy(end, way.offset, way.length)
            end := add(end, way.length)
            if list {
                mstore8(end, or(HAS_RECIPIENT, HAS_AMOUNTS))
                calldatacopy(add(end, 1), list, 40)
                mstore(add(end, 41), shl(128, amounts))
                end := add(end, 57)
            }
            calldatacopy(end, item.offset, item.length)
            end := add(end, item.length)
            mstore(data, sub(sub(end, data), 0x20))
            mstore(0x40, and(add(end, 0x1f), not(0x1f)))
        }
    }

    /// @notice The parts of a list.
    function readList(
        bytes calldata list
    )
        internal
        pure
        returns (
            address owner,
            address recipient,
            uint64 deadline,
            bytes calldata vaults,
            bytes calldata signature
        )
    {
        bool complete;
        (complete, owner, recipient, deadline, vaults, signature) = partsOf(list);
        if (!complete) revert ListMalformed();
    }

    /// @notice Whether a list is complete, and its parts. They mean nothing otherwise.
    function partsOf(
        bytes calldata list
    )
        internal
        pure
        returns (
            bool complete,
            address owner,
            address recipient,
            uint64 deadline,
            bytes calldata vaults,
            bytes calldata signature
        )
    {
        unchecked {
            owner = ownerOf(list);
            recipient = address(bytes20(bytes32(_word(list, RECIPIENT_BYTES))));
            uint256 head = _word(list, 2 * RECIPIENT_BYTES);
            deadline = uint64(head >> 192);
            uint256 count = (head >> 176) & 0xffff;
            uint256 end = LIST_HEAD_BYTES + count * ENTRY_BYTES;
            complete = count - 1 < MAX_LISTED_VAULTS && end <= list.length;
            vaults = _slice(list, LIST_HEAD_BYTES, end - LIST_HEAD_BYTES);
            signature = _slice(list, end, list.length - end);
        }
    }

    /// @notice The item of the call that {callOf} has written, with its way if it has one.
    function called() internal pure returns (bytes calldata) {
        return msg.data[ITEM_OFFSET:];
    }

    /// @notice The terms of that call in memory. The contract itself has encoded them.
    function load(
        WithdrawalTerms calldata terms
    ) internal pure returns (WithdrawalTerms memory held) {
        assembly ("memory-safe") {
            calldatacopy(held, terms, TERMS_BYTES)
        }
    }

    /// @notice The parts of one item of a vault, as {callOf} writes it.
    function read(
        bytes calldata item,
        uint64 vaultId
    )
        internal
        pure
        returns (
            address owner,
            uint64 amount,
            bytes memory mintingBlob,
            bytes32[] calldata siblings,
            uint64 quantity,
            address recipient
        )
    {
        unchecked {
            uint256 flags = _word(item, 0) >> 248;
            owner = address(bytes20(bytes32(_word(item, 1))));
            recipient = owner;
            amount = 1;
            quantity = 1;
            uint256 cursor = HEAD_BYTES;
            if (flags & HAS_RECIPIENT != 0) {
                recipient = address(bytes20(bytes32(_word(item, cursor))));
                cursor += RECIPIENT_BYTES;
            }
            if (flags & HAS_AMOUNTS != 0) {
                uint256 amounts = _word(item, cursor);
                amount = uint64(amounts >> 192);
                quantity = uint64(amounts >> 128);
                cursor += AMOUNTS_BYTES;
            }
            if (flags > ALL_FLAGS) revert ItemMalformed(vaultId);
            bytes calldata text;
            (text, siblings) = bodyOf(item, cursor, vaultId);
            mintingBlob = _copyOf(text);
        }
    }

    /// @notice The end of an item: the minting blob at an offset, and the siblings behind it.
    function bodyOf(
        bytes calldata item,
        uint256 offset,
        uint64 vaultId
    ) internal pure returns (bytes calldata mintingBlob, bytes32[] calldata siblings) {
        unchecked {
            mintingBlob = _slice(item, offset + 1, _word(item, offset) >> 248);
            uint256 cursor = offset + 1 + mintingBlob.length;
            if (cursor > item.length || (item.length - cursor) % 32 != 0)
                revert ItemMalformed(vaultId);
            assembly ("memory-safe") {
                siblings.offset := add(item.offset, cursor)
                siblings.length := shr(5, sub(item.length, cursor))
            }
        }
    }

    /// @notice The position that a listed item names in its list.
    function positionOf(bytes calldata item) internal pure returns (uint256) {
        return (_word(item, 0) >> 224) & 0xffff;
    }

    function _word(bytes calldata data, uint256 offset) private pure returns (uint256 word) {
        assembly ("memory-safe") {
            word := calldataload(add(data.offset, offset))
        }
    }

    function _copyOf(bytes calldata data) private pure returns (bytes memory copy) {
        assembly ("memory-safe") {
            copy := mload(0x40)
            mstore(copy, data.length)
            calldatacopy(add(copy, 0x20), data.offset, data.length)
            mstore(0x40, and(add(add(copy, 0x3f), data.length), not(0x1f)))
        }
    }

    function _slice(
        bytes calldata data,
        uint256 offset,
        uint256 length
    ) private pure returns (bytes calldata slice) {
        assembly ("memory-safe") {
            slice.offset := add(data.offset, offset)
            slice.length := length
        }
    }
}
