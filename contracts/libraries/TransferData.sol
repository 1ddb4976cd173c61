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
    /// @dev From the run's beginning; see {_begin}.
    uint256 private constant LEAVES = 0x280;
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
            uint256 run = _begin(spent);
            uint256 leaf = run + LEAVES;
            uint256 place = firstVaultId << 192;
            (uint256 group, uint256 end) = _groupsOf(data);
            while (group < end) {
                uint256 head = _word(group);
                uint256 length = (head >> 192) & 0xffff;
                head >>= 248;
                uint256 records = group + (head & 2 == 0 ? HEAD_BYTES + SIGNATURE_BYTES : HEAD_BYTES);
                uint256 until = records + length * (RECORD_BYTES + ((head & 1) << 3));
                if (head > 3 || until > end || length - 1 >= MAX_GROUP) revert ITransfers.TransferDataInvalid(group - _startOf(data));
                // The calls in both cases keep the compiler from merging the functions into this one, which would have
                // more variables than the stack.
                if (head & 1 == 0) {
                    uint256 past = _spendRecords(run, records, until, RECORD_BYTES, leaf);
                    _authorize(run, group, records, leaf, past);
                    _writeLeaves(run, leaf, past, place);
                    place += length << 192;
                    leaf = past;
                } else {
                    // The items begin further back, so that no leaf overwrites an item before it is read.
                    uint256 items = leaf + (length << 5);
                    uint256 past = _spendRecords(run, records, until, RECORD_BYTES + AMOUNT_BYTES, items);
                    _authorize(run, group, records, items, past);
                    past = _writeParts(run, leaf, items, past, place, records + RECORD_BYTES);
                    place += (past - leaf) << 187;
                    leaf = past;
                }
                group = until;
            }
            count = (leaf - run - LEAVES) >> 5;
            _end(run, leaf, count, data.length);
            content = LeafTree.fold(run + LEAVES, count);
        }
    }

    /// @dev Where the groups begin and end in calldata.
    function _groupsOf(bytes calldata data) private pure returns (uint256 group, uint256 end) {
        if (data.length < 2 || uint8(data[0]) != VERSION) revert ITransfers.TransferDataInvalid(0);
        group = _startOf(data) + 1;
        end = _startOf(data) + data.length;
    }

    function _startOf(bytes calldata data) private pure returns (uint256 start) {
        assembly ("memory-safe") {
            start := data.offset
        }
    }

    function _word(uint256 offset) private pure returns (uint256 word) {
        assembly ("memory-safe") {
            word := calldataload(offset)
        }
    }

    /// @dev What lasts from group to group is in memory, from `run` on: the number, slot and bits of the present storage
    /// word; a wrong id; the four words of a transfer; the preimage of an authorization or of a leaf; space for
    /// {LeafTree}; the leaves.
    function _begin(mapping(uint256 word => uint256 bits) storage spent) private pure returns (uint256 run) {
        bytes32 typeHash = TRANSFER_TYPEHASH;
        assembly ("memory-safe") {
            run := mload(0x40)
            mstore(run, not(0))
            mstore(add(run, 0x20), 0)
            mstore(add(run, 0x60), 0)
            mstore(add(run, 0x80), typeHash)
            // For the slots of the mapping; the number of a word comes before it.
            mstore(0x20, spent.slot)
        }
    }

    /// @dev Writes the last storage word, and reverts when an id was wrong or there are too many outputs.
    function _end(uint256 run, uint256 leaf, uint256 count, uint256 dataLength) private {
        uint256 wrong;
        assembly ("memory-safe") {
            if mload(add(run, 0x20)) { sstore(mload(add(run, 0x20)), mload(add(run, 0x40))) }
            wrong := mload(add(run, 0x60))
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

    /// @dev Sets the bits of a group's records, and writes their items: their EIP-712 struct hashes.
    /// @param size Bytes of a record.
    function _spendRecords(uint256 run, uint256 record, uint256 until, uint256 size, uint256 items) private returns (uint256 past) {
        assembly ("memory-safe") {
            let index := mload(run)
            let slot := mload(add(run, 0x20))
            let bits := mload(add(run, 0x40))
            mstore(add(run, 0xc0), 0)
            for {} lt(record, until) { record := add(record, size) } {
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
                if or(and(bits, bit), and(inId, UNUSED_ID_BITS)) { mstore(add(run, 0x60), add(inId, 1)) }
                bits := or(bits, bit)
                mstore(add(run, 0xa0), inId)
                if gt(size, RECORD_BYTES) { mstore(add(run, 0xc0), shr(192, calldataload(add(record, RECORD_BYTES)))) }
                mstore(add(run, 0xe0), shr(96, calldataload(add(record, 8))))
                mstore(items, keccak256(add(run, 0x80), 0x80))
                items := add(items, 0x20)
            }
            mstore(run, index)
            mstore(add(run, 0x20), slot)
            mstore(add(run, 0x40), bits)
            past := items
        }
    }

    /// @dev Puts the group's authorization into the preimage of its leaves.
    function _authorize(uint256 run, uint256 group, uint256 records, uint256 items, uint256 past) private pure {
        assembly ("memory-safe") {
            let preimage := add(run, 0x100)
            calldatacopy(preimage, add(group, 1), 5)
            mstore(add(preimage, 5), keccak256(items, sub(past, items)))
            // The signature lies between the group's head and its records.
            let signatureBytes := sub(records, add(group, HEAD_BYTES))
            calldatacopy(add(preimage, 37), add(group, HEAD_BYTES), signatureBytes)
            mstore(add(preimage, 42), keccak256(preimage, add(37, signatureBytes)))
            mstore8(preimage, 8)
        }
    }

    /// @dev Each leaf takes the place of its item.
    /// @param place The output's id and part, in the first nine bytes.
    function _writeLeaves(uint256 run, uint256 item, uint256 past, uint256 place) private pure {
        assembly ("memory-safe") {
            let preimage := add(run, 0x100)
            for {} lt(item, past) { item := add(item, 0x20) } {
                mstore(add(preimage, 1), place)
                mstore(add(preimage, 10), mload(item))
                mstore(item, keccak256(preimage, 74))
                place := add(place, NEXT_PLACE)
            }
        }
    }

    /// @dev The same where a record with an amount makes two leaves: the payee's part and the change.
    /// @param amount Where the first record's amount is in calldata.
    function _writeParts(uint256 run, uint256 leaf, uint256 items, uint256 past, uint256 place, uint256 amount)
        private
        pure
        returns (uint256)
    {
        unchecked {
            for (; items < past; items += 0x20) {
                uint256 parts = _word(amount) >> 192 == 0 ? 1 : 2;
                for (uint256 part; part < parts; ++part) {
                    assembly ("memory-safe") {
                        mstore(leaf, mload(items))
                    }
                    _writeLeaves(run, leaf, leaf + 0x20, place | (part << 184));
                    place += NEXT_PLACE;
                    leaf += 0x20;
                }
                amount += RECORD_BYTES + AMOUNT_BYTES;
            }
            return leaf;
        }
    }
}
