// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {ITransfers} from "../interfaces/ITransfers.sol";
import {Transfer} from "../interfaces/Model.sol";
import {LeafTree} from "./LeafTree.sol";
import {Manifest} from "./Manifest.sol";

/// @title Computes a transfer batch's content from its data, and marks each vault that it spends.
/// @notice Decodes the grammar of docs/protocol.md 10 from calldata. It checks no signature and no amount: whoever exits
/// proves whether a record counts. It is in assembly because this loop is the price of a transfer. Arithmetic is
/// unchecked: every number is at most a length of calldata, or masked.
library TransferData {
    uint256 private constant HEAD_BYTES = 8;
    uint256 private constant SIGNATURE_BYTES = 65;
    uint256 private constant RECORD_BYTES = 28;
    uint256 private constant AMOUNT_BYTES = 8;
    // Memory that lasts from group to group, at fixed places, which cost less than places relative to a pointer: the
    // present storage word, a wrong id, a transfer's four words, the preimage of an authorization or of a leaf, and
    // behind space for {LeafTree} the leaves.
    uint256 private constant INDEX = 0x800;
    uint256 private constant SLOT = 0x820;
    uint256 private constant BITS = 0x840;
    uint256 private constant WRONG = 0x860;
    uint256 private constant ITEM = 0x880;
    uint256 private constant ITEM_ID = 0x8a0;
    uint256 private constant ITEM_AMOUNT = 0x8c0;
    uint256 private constant ITEM_TO = 0x8e0;
    uint256 private constant PREIMAGE = 0x900;
    uint256 private constant LEAVES = 0xa80;
    /// @dev From an output's place to the next one's.
    uint256 private constant NEXT_PLACE = 1 << 192;
    bytes32 private constant TRANSFER_TYPEHASH = keccak256("Transfer(uint64 vaultId,uint64 amount,address to)");
    /// @dev The first byte of the data. Batch data and blob data begin with others.
    uint256 private constant VERSION = 3;
    uint256 private constant KIND = 3;
    uint256 private constant MAX_SLOTS = 1 << 13;
    uint256 private constant MAX_GROUP = 1024;
    /// @dev Bits of a vault id that no vault has.
    uint256 private constant UNUSED_ID_BITS = 0x7ff0000000000000;

    /// @notice The root of a transfer batch. Its kind is its own and it has no manifest, so no proof of a mint leads to
    /// it.
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

    /// @notice What a record binds of the group that holds it: keccak256(deadline(5) ‖ list(32) ‖ signature).
    function authOf(uint40 deadline, bytes32 list, bytes calldata signature) internal pure returns (bytes32) {
        return keccak256(abi.encodePacked(deadline, list, signature));
    }

    /// @notice The leaf of an output: keccak256(0x08 ‖ outId(8) ‖ part(1) ‖ item(32) ‖ auth(32)).
    function leafOf(uint64 outId, uint8 part, uint64 inId, uint64 amount, address to, bytes32 auth) internal pure returns (bytes32) {
        return keccak256(abi.encodePacked(uint8(8), outId, part, itemOf(inId, amount, to), auth));
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
    /// @param spent One bit a vault. A bit that is set already reverts.
    /// @return content The root of the tree of outputs.
    /// @return count The number of outputs.
    function spend(bytes calldata data, uint256 firstVaultId, mapping(uint256 word => uint256 bits) storage spent)
        internal
        returns (bytes32 content, uint256 count)
    {
        unchecked {
            _begin(spent);
            uint256 leaf = LEAVES;
            (uint256 group, uint256 end) = _groupsOf(data);
            while (group < end) {
                uint256 head = _word(group);
                uint256 length = (head >> 192) & 0xffff;
                uint256 size = RECORD_BYTES + ((head >> 245) & AMOUNT_BYTES);
                uint256 records = group + HEAD_BYTES + SIGNATURE_BYTES - SIGNATURE_BYTES * ((head >> 249) & 1);
                uint256 until = records + length * size;
                if (_isMalformed(head, length, until, end)) revert ITransfers.TransferDataInvalid(group - (end - data.length));
                // The first output of the group.
                uint256 place = (firstVaultId << 192) + ((leaf - LEAVES) << 187);
                // Both cases have all calls. A function with one call would be merged into this one, which would then
                // have more variables than the stack.
                if ((head >> 248) & 1 == 0) {
                    uint256 past = _spendGroup(group, records, until, size, leaf);
                    _writeLeaves(leaf, past, place);
                    leaf = past;
                } else {
                    // The items begin further back, so that no leaf overwrites an item before it is read.
                    uint256 items = leaf + (length << 5);
                    uint256 past = _spendGroup(group, records, until, size, items);
                    leaf = _writeParts(leaf, items, past, place, records);
                }
                group = until;
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

    /// @dev Without jumps: each group pays for it.
    function _isMalformed(uint256 head, uint256 length, uint256 until, uint256 end) private pure returns (bool yes) {
        assembly ("memory-safe") {
            yes := or(or(iszero(iszero(shr(250, head))), gt(until, end)), iszero(lt(sub(length, 1), MAX_GROUP)))
        }
    }

    function _word(uint256 offset) private pure returns (uint256 word) {
        assembly ("memory-safe") {
            word := calldataload(offset)
        }
    }

    function _begin(mapping(uint256 word => uint256 bits) storage spent) private pure {
        bytes32 typeHash = TRANSFER_TYPEHASH;
        assembly ("memory-safe") {
            // The memory from INDEX on is free. It is taken by {_end}.
            if gt(mload(0x40), INDEX) { invalid() }
            mstore(INDEX, not(0))
            mstore(SLOT, 0)
            mstore(WRONG, 0)
            mstore(ITEM, typeHash)
            // For the slots of the mapping; the number of a word comes before it.
            mstore(0x20, spent.slot)
        }
    }

    /// @dev Writes the last storage word, and reverts when an id was wrong or there are too many outputs.
    function _end(uint256 leaf, uint256 count, uint256 dataLength) private {
        uint256 wrong;
        assembly ("memory-safe") {
            if mload(SLOT) { sstore(mload(SLOT), mload(BITS)) }
            wrong := mload(WRONG)
            // Space for {LeafTree} behind the leaves.
            mstore(0x40, add(leaf, 0x200))
        }
        unchecked {
            if (count > MAX_SLOTS || (wrong != 0 && (wrong - 1) & UNUSED_ID_BITS != 0)) {
                revert ITransfers.TransferDataInvalid(dataLength);
            }
            if (wrong != 0) revert ITransfers.Spent(uint64(wrong - 1));
        }
    }

    /// @dev Sets the bits of a group's records, writes their items, which are their EIP-712 struct hashes, and puts the
    /// group's authorization into the preimage of its leaves.
    /// @param size Bytes of a record.
    /// @return past The end of the items.
    function _spendGroup(uint256 group, uint256 records, uint256 until, uint256 size, uint256 items) private returns (uint256 past) {
        assembly ("memory-safe") {
            let index := mload(INDEX)
            let slot := mload(SLOT)
            let bits := mload(BITS)
            mstore(ITEM_AMOUNT, 0)
            past := items
            // A group has at least one record, so this looks for the end behind each one only.
            for { let record := records } 1 {} {
                let inId := shr(192, calldataload(record))
                if xor(shr(8, inId), index) {
                    if slot { sstore(slot, bits) }
                    index := shr(8, inId)
                    mstore(0x00, index)
                    slot := keccak256(0x00, 0x40)
                    bits := sload(slot)
                }
                let bit := shl(and(inId, 0xff), 1)
                // One more than the id, so that it is not zero.
                if or(and(bits, bit), and(inId, UNUSED_ID_BITS)) { mstore(WRONG, add(inId, 1)) }
                bits := or(bits, bit)
                mstore(ITEM_ID, inId)
                if gt(size, RECORD_BYTES) { mstore(ITEM_AMOUNT, shr(192, calldataload(add(record, RECORD_BYTES)))) }
                mstore(ITEM_TO, shr(96, calldataload(add(record, 8))))
                mstore(past, keccak256(ITEM, 0x80))
                past := add(past, 0x20)
                record := add(record, size)
                if eq(record, until) { break }
            }
            mstore(INDEX, index)
            mstore(SLOT, slot)
            mstore(BITS, bits)
            calldatacopy(PREIMAGE, add(group, 1), 5)
            mstore(add(PREIMAGE, 5), keccak256(items, sub(past, items)))
            // The signature lies between the group's head and its records.
            let signatureBytes := sub(records, add(group, HEAD_BYTES))
            calldatacopy(add(PREIMAGE, 37), add(group, HEAD_BYTES), signatureBytes)
            mstore(add(PREIMAGE, 42), keccak256(PREIMAGE, add(37, signatureBytes)))
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
                if eq(item, past) { break }
                place := add(place, NEXT_PLACE)
            }
        }
    }

    /// @dev The same where a record with an amount makes two leaves: the payee's part and the change.
    function _writeParts(uint256 leaf, uint256 items, uint256 past, uint256 place, uint256 record) private pure returns (uint256) {
        unchecked {
            for (; items < past; items += 0x20) {
                uint256 parts = _word(record + RECORD_BYTES) >> 192 == 0 ? 1 : 2;
                for (uint256 part; part < parts; ++part) {
                    assembly ("memory-safe") {
                        mstore(leaf, mload(items))
                    }
                    _writeLeaves(leaf, leaf + 0x20, place | (part << 184));
                    place += NEXT_PLACE;
                    leaf += 0x20;
                }
                record += RECORD_BYTES + AMOUNT_BYTES;
            }
            return leaf;
        }
    }
}
