// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {ITransfers} from "../interfaces/ITransfers.sol";
import {Transfer} from "../interfaces/Model.sol";
import {LeafTree} from "./LeafTree.sol";
import {Manifest} from "./Manifest.sol";

/// @title Computes a transfer batch's content from its data, and marks each vault that it spends.
/// @notice Decodes the grammar of docs/protocol.md 10 from calldata. It checks no signature and no
/// amount: whoever exits proves whether a record counts. It is in assembly because this loop is the
/// price of a transfer. Arithmetic is unchecked: every number is at most a length of calldata, or
/// masked.
library TransferData {
    // Bits of a group's form.
    uint256 private constant AMOUNTS = 1;
    uint256 private constant APPROVED = 2;
    uint256 private constant MANY = 4;
    uint256 private constant BASE = 8;
    uint256 private constant WHOLE_IDS = 16;
    uint256 private constant ONE_RECEIVER = 32;
    /// @dev form, deadline.
    uint256 private constant HEAD_BYTES = 5;
    uint256 private constant SIGNATURE_BYTES = 64;
    uint256 private constant AMOUNT_BYTES = 8;
    /// @dev An authorization is deadline(4) ‖ list(32) ‖ signature(64).
    uint256 private constant AUTH_BYTES = 100;
    // Memory that lasts from group to group, at fixed places, which cost less than places relative
    // to a pointer: the present storage word, a wrong id, the counts of batches, the base of ids,
    // the parts of the present group, a transfer's four words, the preimage of an authorization or
    // of a leaf, the count of makings, and behind space for {LeafTree} the leaves.
    uint256 private constant INDEX = 0x800;
    uint256 private constant SLOT = 0x820;
    uint256 private constant BITS = 0x840;
    uint256 private constant WRONG = 0x860;
    uint256 private constant COUNTS = 0x880;
    uint256 private constant IDS_FROM = 0x8a0;
    uint256 private constant ITEM = 0x8c0;
    uint256 private constant ITEM_ID = 0x8e0;
    uint256 private constant ITEM_AMOUNT = 0x900;
    uint256 private constant ITEM_TO = 0x920;
    uint256 private constant PREIMAGE = 0x940;
    uint256 private constant UNUSED = 0x9e0;
    uint256 private constant MAKINGS = 0xa00;
    uint256 private constant LEAVES = 0xac0;
    /// @dev The part of a made vault's id above its slot, for the first making, which is number 1.
    uint256 private constant FIRST_MAKING = 0x40000000001;
    /// @dev A group of one record in the shortest form: form 0, deadline, signature, id, receiver.
    uint256 private constant SINGLE_BYTES = 92;
    uint256 private constant SINGLE_RECORD = 69;
    /// @dev From an output's place to the next one's.
    uint256 private constant NEXT_PLACE = 1 << 192;
    bytes32 private constant TRANSFER_TYPEHASH = keccak256(
        "Transfer(uint64 vaultId,uint64 amount,address to)"
    );
    /// @dev The first byte of the data. Batch data and blob data begin with others.
    uint256 private constant VERSION = 3;
    uint256 private constant KIND = 3;
    uint256 private constant MAX_SLOTS = 1 << 13;
    uint256 private constant MAX_GROUP = 1024;

    /// @dev A group's parts in calldata.
    struct Group {
        uint256 form;
        uint256 start;
        uint256 signature;
        uint256 records;
        /// @dev Behind the last record.
        uint256 until;
        /// @dev Bytes of a record.
        uint256 size;
        /// @dev The places of id and receiver in the word at a record, and what is added to the id.
        uint256 idShift;
        uint256 toShift;
        uint256 base;
        /// @dev Where a record's receiver is written: to the item, unless the group has one for
        /// all.
        uint256 toPlace;
    }

    /// @notice The root of a transfer batch. Its kind is its own and it has no manifest, so no
    /// proof of a mint leads to it.
    function batchRoot(bytes32 content) internal pure returns (bytes32) {
        return Manifest.batchRoot(KIND, 0, content);
    }

    /// @notice keccak256(data), in memory that {spend} can use again.
    function hashOf(bytes calldata data) internal pure returns (bytes32 hash) {
        assembly ("memory-safe") {
            let free := mload(0x40)
            calldatacopy(free, data.offset, data.length)
            hash := keccak256(free, data.length)
        }
    }

    /// @notice A transfer's EIP-712 struct hash.
    function itemOf(uint64 inId, uint64 amount, address to) internal pure returns (bytes32) {
        return keccak256(abi.encode(TRANSFER_TYPEHASH, inId, amount, to));
    }

    /// @notice EIP-712's hash of an array of transfers.
    function listOf(Transfer[] calldata transfers) internal pure returns (bytes32) {
        bytes32[] memory items = new bytes32[](transfers.length);
        for (uint256 i; i < items.length; ++i) {
            items[i] = itemOf(transfers[i].vaultId, transfers[i].amount, transfers[i].to);
        }
        return keccak256(abi.encodePacked(items));
    }

    /// @notice Sets the bit of each vault that the data spends.
    /// @param counts The numbers of batches on L1: of validium in bits 0 to 31, of rollup in bits
    /// 32 to 63.
    /// @param makings The number of makings on L1.
    /// @param spent One bit a vault. A bit that is set already reverts.
    /// @return content The root of the tree of outputs.
    /// @return count The number of outputs.
    function spend(
        bytes calldata data,
        uint256 firstVaultId,
        uint256 counts,
        uint256 makings,
        mapping(uint256 word => uint256 bits) storage spent
    ) internal returns (bytes32 content, uint256 count) {
        unchecked {
            Group memory group;
            _begin(counts, makings, spent);
            uint256 leaf = LEAVES;
            (uint256 next, uint256 end) = _groupsOf(data);
            while (next < end) {
                (next, leaf) = _spendSingles(next, end, leaf, firstVaultId << 192);
                if (next == end) break;
                next = _readGroup(group, next, end, end - data.length);
                uint256 form = group.form;
                // The first output of the group.
                uint256 place = (firstVaultId << 192) + ((leaf - LEAVES) << 187);
                // Both cases have all calls. A function with one call would be merged into this
                // one, which would then have more variables than the stack.
                if (form & AMOUNTS == 0) {
                    uint256 past = _spendGroup(group, leaf);
                    _writeLeaves(leaf, past, place);
                    leaf = past;
                } else {
                    // The items begin further back, so that no leaf overwrites an item before it is
                    // read.
                    uint256 items = leaf + (((group.until - group.records) / group.size) << 5);
                    uint256 past = _spendGroup(group, items);
                    leaf = _writeParts(leaf, items, past, place, group);
                }
            }
            count = (leaf - LEAVES) >> 5;
            _end(leaf, count, data.length);
            content = LeafTree.fold(LEAVES, count);
        }
    }

    /// @dev Where the groups begin and end in calldata.
    function _groupsOf(bytes calldata data) private pure returns (uint256 group, uint256 end) {
        if (data.length < 2 || uint8(data[0]) != VERSION) revert ITransfers.TransferDataInvalid(0);
        assembly ("memory-safe") {
            group := add(data.offset, 1)
            end := add(data.offset, data.length)
        }
    }

    /// @dev Reads past the end are refused by the check of the group's own end.
    /// @return until The end of the group.
    function _readGroup(
        Group memory group,
        uint256 start,
        uint256 end,
        uint256 dataStart
    ) private view returns (uint256 until) {
        unchecked {
            uint256 head = _word(start);
            uint256 form = head >> 248;
            uint256 length = 1;
            uint256 cursor = start + HEAD_BYTES;
            if (form & BASE != 0) {
                uint256 base = _word(cursor) >> 192;
                cursor += 8;
                assembly ("memory-safe") {
                    mstore(IDS_FROM, base)
                }
            }
            if (form & MANY != 0) {
                length = _word(cursor) >> 240;
                cursor += 2;
            }
            uint256 size = 3;
            (group.idShift, group.toShift, group.base) = (232, 72, _idsFrom());
            if (form & WHOLE_IDS != 0) {
                size = 8;
                (group.idShift, group.toShift, group.base) = (192, 32, 0);
            }
            group.toPlace = ITEM_TO;
            if (form & ONE_RECEIVER != 0) {
                group.toPlace = UNUSED;
                uint256 to = _word(cursor) >> 96;
                assembly ("memory-safe") {
                    mstore(ITEM_TO, to)
                }
                cursor += 20;
            } else {
                size += 20;
            }
            size += (form & AMOUNTS) << 3;
            group.signature = cursor;
            if (form & APPROVED == 0) cursor += SIGNATURE_BYTES;
            until = cursor + length * size;
            if (form > 63 || length - 1 >= MAX_GROUP || until > end)
                revert ITransfers.TransferDataInvalid(start - dataStart);
            uint256 deadline = (head >> 216) & 0xffffffff;
            if (block.timestamp > deadline) revert ITransfers.DeadlinePassed(uint64(deadline));
            (group.form, group.start, group.records, group.until, group.size) = (
                form,
                start,
                cursor,
                until,
                size
            );
        }
    }

    function _idsFrom() private pure returns (uint256 base) {
        assembly ("memory-safe") {
            base := mload(IDS_FROM)
        }
    }

    function _word(uint256 offset) private pure returns (uint256 word) {
        assembly ("memory-safe") {
            word := calldataload(offset)
        }
    }

    function _begin(
        uint256 counts,
        uint256 makings,
        mapping(uint256 word => uint256 bits) storage spent
    ) private pure {
        bytes32 typeHash = TRANSFER_TYPEHASH;
        assembly ("memory-safe") {
            // The memory from INDEX on is free. It is taken by {_end}.
            if gt(mload(0x40), INDEX) {
                invalid()
            }
            mstore(INDEX, not(0))
            mstore(SLOT, 0)
            mstore(WRONG, 0)
            mstore(COUNTS, and(counts, 0xffffffffffffffff))
            mstore(MAKINGS, makings)
            mstore(IDS_FROM, 0)
            mstore(ITEM, typeHash)
            // For the slots of the mapping; the number of a word comes before it.
            mstore(0x20, spent.slot)
        }
    }

    /// @dev Writes the last storage word, and reverts when an id was wrong or there are too many
    /// outputs.
    function _end(uint256 leaf, uint256 count, uint256 dataLength) private {
        uint256 wrong;
        uint256 counts;
        uint256 makings;
        assembly ("memory-safe") {
            if mload(SLOT) {
                sstore(mload(SLOT), mload(BITS))
            }
            wrong := mload(WRONG)
            counts := mload(COUNTS)
            makings := mload(MAKINGS)
            // Space for {LeafTree} behind the leaves.
            mstore(0x40, add(leaf, 0x200))
        }
        unchecked {
            if (count > MAX_SLOTS) revert ITransfers.TransferDataInvalid(dataLength);
            if (wrong == 0) return;
            uint256 vaultId = wrong - 1;
            if (
                (vaultId >> 20) & 0x7ffffffffff < uint32(counts >> ((vaultId >> 63) << 5)) ||
                (vaultId >> 20) - FIRST_MAKING < makings
            ) revert ITransfers.Spent(uint64(vaultId));
            revert ITransfers.BatchUnknown(uint64(vaultId));
        }
    }

    /// @dev The groups of one record in the shortest form, until another one comes, or one whose
    /// deadline has passed. {_spendGroup} and {_writeLeaves} do the same for any group.
    /// @param firstPlace The place of the batch's first output, in the first nine bytes.
    function _spendSingles(
        uint256 group,
        uint256 end,
        uint256 leaf,
        uint256 firstPlace
    ) private returns (uint256, uint256) {
        assembly ("memory-safe") {
            let index := mload(INDEX)
            let bits := mload(BITS)
            mstore(ITEM_AMOUNT, 0)
            let place := add(firstPlace, shl(187, sub(leaf, LEAVES)))
            // The first five bytes are the deadline if the form is zero, and larger than any
            // deadline if it is not.
            for {
                let last := sub(end, sub(SINGLE_BYTES, 1))
            } lt(group, last) {} {
                if iszero(
                    lt(
                        sub(shr(216, calldataload(group)), timestamp()),
                        sub(0x100000000, timestamp())
                    )
                ) {
                    break
                }
                let word := calldataload(add(group, SINGLE_RECORD))
                let inId := add(mload(IDS_FROM), shr(232, word))
                if xor(shr(8, inId), index) {
                    if mload(SLOT) {
                        sstore(mload(SLOT), bits)
                    }
                    index := shr(8, inId)
                    mstore(0x00, index)
                    mstore(SLOT, keccak256(0x00, 0x40))
                    bits := sload(mload(SLOT))
                    // The batch must be on L1. Unused bits make its number too large, and a sum of
                    // 2^64 has no count.
                    if iszero(
                        lt(
                            and(shr(20, inId), 0x7ffffffffff),
                            and(shr(shl(5, shr(63, inId)), mload(COUNTS)), 0xffffffff)
                        )
                    ) {
                        // Or the making must be, as the vault's id is that of a made one.
                        if iszero(lt(sub(shr(20, inId), FIRST_MAKING), mload(MAKINGS))) {
                            mstore(WRONG, add(inId, 1))
                        }
                    }
                }
                let bit := shl(and(inId, 0xff), 1)
                // One more than the id, so that it is not zero.
                if and(bits, bit) {
                    mstore(WRONG, add(inId, 1))
                }
                bits := or(bits, bit)
                mstore(ITEM_ID, inId)
                mstore(ITEM_TO, and(shr(72, word), 0xffffffffffffffffffffffffffffffffffffffff))
                let item := keccak256(ITEM, 0x80)
                mstore(0x00, item)
                calldatacopy(PREIMAGE, add(group, 1), 4)
                mstore(add(PREIMAGE, 4), keccak256(0x00, 0x20))
                calldatacopy(add(PREIMAGE, 36), add(group, HEAD_BYTES), SIGNATURE_BYTES)
                mstore(add(PREIMAGE, 42), keccak256(PREIMAGE, AUTH_BYTES))
                mstore8(PREIMAGE, 8)
                mstore(add(PREIMAGE, 1), place)
                mstore(add(PREIMAGE, 10), item)
                mstore(leaf, keccak256(PREIMAGE, 74))
                place := add(place, NEXT_PLACE)
                leaf := add(leaf, 0x20)
                group := add(group, SINGLE_BYTES)
            }
            mstore(INDEX, index)
            mstore(BITS, bits)
        }
        return (group, leaf);
    }

    /// @dev Sets the bits of a group's records, writes their items, which are their EIP-712 struct
    /// hashes, and puts the group's authorization into the preimage of its leaves.
    /// @return past The end of the items.
    function _spendGroup(Group memory group, uint256 items) private returns (uint256 past) {
        (uint256 base, uint256 idShift, uint256 toShift, uint256 toPlace, uint256 size) = (
            group.base,
            group.idShift,
            group.toShift,
            group.toPlace,
            group.size
        );
        (uint256 record, uint256 until, uint256 amountAt) = (group.records, group.until, 0);
        if (group.form & AMOUNTS != 0) amountAt = size - AMOUNT_BYTES;
        assembly ("memory-safe") {
            let index := mload(INDEX)
            let bits := mload(BITS)
            mstore(ITEM_AMOUNT, 0)
            past := items
            // A group has at least one record, so this looks for the end behind each one only.
            for {} 1 {} {
                let word := calldataload(record)
                let inId := add(base, shr(idShift, word))
                if xor(shr(8, inId), index) {
                    if mload(SLOT) {
                        sstore(mload(SLOT), bits)
                    }
                    index := shr(8, inId)
                    mstore(0x00, index)
                    mstore(SLOT, keccak256(0x00, 0x40))
                    bits := sload(mload(SLOT))
                    if iszero(
                        lt(
                            and(shr(20, inId), 0x7ffffffffff),
                            and(shr(shl(5, shr(63, inId)), mload(COUNTS)), 0xffffffff)
                        )
                    ) {
                        // Or the making must be, as the vault's id is that of a made one.
                        if iszero(lt(sub(shr(20, inId), FIRST_MAKING), mload(MAKINGS))) {
                            mstore(WRONG, add(inId, 1))
                        }
                    }
                }
                let bit := shl(and(inId, 0xff), 1)
                if and(bits, bit) {
                    mstore(WRONG, add(inId, 1))
                }
                bits := or(bits, bit)
                mstore(ITEM_ID, inId)
                mstore(toPlace, and(shr(toShift, word), 0xffffffffffffffffffffffffffffffffffffffff))
                if amountAt {
                    mstore(ITEM_AMOUNT, shr(192, calldataload(add(record, amountAt))))
                }
                mstore(past, keccak256(ITEM, 0x80))
                past := add(past, 0x20)
                record := add(record, size)
                if eq(record, until) {
                    break
                }
            }
            mstore(INDEX, index)
            mstore(BITS, bits)
        }
        (uint256 start, uint256 signature) = (group.start, group.signature);
        // An approved group has zeros. Past the end of calldata reads as zero.
        if (group.form & APPROVED != 0) signature = type(uint256).max;
        assembly ("memory-safe") {
            calldatacopy(PREIMAGE, add(start, 1), 4)
            mstore(add(PREIMAGE, 4), keccak256(items, sub(past, items)))
            calldatacopy(add(PREIMAGE, 36), signature, SIGNATURE_BYTES)
            mstore(add(PREIMAGE, 42), keccak256(PREIMAGE, AUTH_BYTES))
            mstore8(PREIMAGE, 8)
        }
    }

    /// @dev Each leaf takes the place of its item. There is at least one.
    /// @param place The output's id and part, in the first nine bytes.
    function _writeLeaves(uint256 item, uint256 past, uint256 place) private pure {
        assembly ("memory-safe") {
            for {} 1 {} {
                mstore(add(PREIMAGE, 1), place)
                mstore(add(PREIMAGE, 10), mload(item))
                mstore(item, keccak256(PREIMAGE, 74))
                item := add(item, 0x20)
                if eq(item, past) {
                    break
                }
                place := add(place, NEXT_PLACE)
            }
        }
    }

    /// @dev Writes two leaves for each record with an amount: the payee's part and the change.
    function _writeParts(
        uint256 leaf,
        uint256 items,
        uint256 past,
        uint256 place,
        Group memory group
    ) private pure returns (uint256) {
        unchecked {
            uint256 amount = group.records + group.size - AMOUNT_BYTES;
            for (; items < past; items += 0x20) {
                uint256 parts = _word(amount) >> 192 == 0 ? 1 : 2;
                for (uint256 part; part < parts; ++part) {
                    assembly ("memory-safe") {
                        mstore(leaf, mload(items))
                    }
                    _writeLeaves(leaf, leaf + 0x20, place | (part << 184));
                    place += NEXT_PLACE;
                    leaf += 0x20;
                }
                amount += group.size;
            }
            return leaf;
        }
    }
}
