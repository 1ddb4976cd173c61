// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {LeafTree} from "./LeafTree.sol";
import {Manifest} from "./Manifest.sol";

/// @title Computes a batch's Merkle root from its data; docs/protocol.md 4.
/// @notice The data spells the words of each vault. L1 widens a record to a head and hashes it with
/// its continuations, and reads nothing of them but how many continuations there are.
///
///     data   = 0x01 assetCount:u16 asset(40 each) ownerCount:u16 owner(20 each)
///              payloadBytes:u8 vaultCount:u32 records continuations(31 each)
///     record = tag:u8 assetIndex:u8 owner:20 payload              without owners in front
///            | tag:u8 assetIndex:u8 ownerIndex:u16 payload        with them
///
/// @dev The loops are in assembly because they are the price of a batch. Arithmetic is unchecked:
/// every number is at most a length of calldata, a count below 2^32, or masked.
library BatchData {
    /// @notice At this offset, a part of the data is cut short or out of range, or the last part
    /// does not end with the data.
    error BatchDataInvalid(uint256 offset);

    uint256 private constant VERSION = 1;
    /// @dev version:u8 assetCount:u16.
    uint256 private constant HEAD_BYTES = 3;
    uint256 private constant OWNER_BYTES = 20;
    uint256 private constant MAX_PAYLOAD_BYTES = 10;
    uint256 private constant CONTINUATION_BYTES = 31;
    /// @dev payloadBytes:u8 vaultCount:u32.
    uint256 private constant WIDTHS_BYTES = 5;
    /// @dev tag:u8 assetIndex:u8, and without owners in front owner:20.
    uint256 private constant KEPT = 0xffff << 240;
    uint256 private constant INLINE_KEPT = ((1 << 176) - 1) << 80;
    /// @dev Within the tag, the number of continuations.
    uint256 private constant COUNT_BITS = 0xf << 248;
    /// @dev The bits of a record in front of its payload.
    uint256 private constant PAYLOAD = 32;
    uint256 private constant INLINE_PAYLOAD = 176;
    /// @dev An owner's index, shifted by so much, is 32 times the index.
    uint256 private constant OWNER_PLACE = 219;
    uint256 private constant PLACES = 0xffff << 5;

    /// @dev Bytes of the workspace in front of the leaves: the words of an id and of a head, then
    /// fifteen continuations, which {LeafTree-fold} overwrites.
    uint256 private constant LEAVES = 0x220;

    /// @dev Where the parts are, and how a record becomes a head. It is in memory, because the
    /// loops have no stack for all of it.
    struct Parts {
        /// @dev Where the data begins, in calldata, as the places of its parts are.
        uint256 data;
        /// @dev The next record.
        uint256 record;
        uint256 recordBytes;
        uint256 recordsEnd;
        /// @dev The next continuation.
        uint256 continuation;
        /// @dev The bits of a record that are the same bits of its head.
        uint256 kept;
        /// @dev Shifts of a record, to the left and then to the right, that leave its payload.
        uint256 left;
        uint256 right;
        /// @dev Where memory has a word for each owner, as a head has it. Without owners it is a
        /// zero.
        uint256 owners;
        /// @dev Bits of a shifted record that are an offset in these words.
        uint256 places;
        /// @dev The end of the owners: where the workspace begins.
        uint256 workspace;
        /// @dev Vault id of the next record.
        uint256 vaultId;
        /// @dev Where the next leaf goes.
        uint256 leaf;
    }

    /// @notice The data's table of assets, packed as {Manifest} reads it. {Manifest} checks their
    /// order and number.
    function assets(bytes calldata data) internal pure returns (bytes calldata packed) {
        unchecked {
            uint256 head = _word(data, 0);
            if (head >> 248 != VERSION) revert BatchDataInvalid(0);
            uint256 size = ((head >> 232) & 0xffff) * Manifest.ASSET_BYTES;
            if (data.length < HEAD_BYTES + size) revert BatchDataInvalid(data.length);
            assembly ("memory-safe") {
                packed.offset := add(data.offset, HEAD_BYTES)
                packed.length := size
            }
        }
    }

    /// @notice The root of the batch's vault tree, and how many slots it has.
    /// @param data The whole batch data, whose {assets} are valid.
    /// @param firstVaultId Vault id of slot 0.
    /// @param maxVaults Most slots.
    function root(
        bytes calldata data,
        uint256 firstVaultId,
        uint256 maxVaults
    ) internal pure returns (bytes32 content, uint256 vaultCount) {
        unchecked {
            Parts memory parts;
            uint256 cursor = HEAD_BYTES + assets(data).length;
            uint256 owners = _word(data, cursor) >> 240;
            uint256 from = cursor + 2;
            cursor = from + owners * OWNER_BYTES;
            if (cursor > data.length) revert BatchDataInvalid(data.length);
            uint256 widths = _word(data, cursor) >> 216;
            uint256 payloadBytes = widths >> 32;
            vaultCount = uint32(widths);
            if (payloadBytes > MAX_PAYLOAD_BYTES || vaultCount == 0 || vaultCount > maxVaults)
                revert BatchDataInvalid(cursor);
            (parts.kept, parts.left, parts.places) =
                owners == 0 ? (INLINE_KEPT, INLINE_PAYLOAD, 0) : (KEPT, PAYLOAD, PLACES);
            parts.right = 256 - 8 * payloadBytes;
            parts.recordBytes = parts.left / 8 + payloadBytes;
            uint256 place;
            assembly ("memory-safe") {
                place := data.offset
            }
            parts.data = place;
            parts.record = place + cursor + WIDTHS_BYTES;
            parts.recordsEnd = parts.record + parts.recordBytes * vaultCount;
            parts.continuation = parts.recordsEnd;
            parts.vaultId = firstVaultId;
            _readOwners(parts, place + from, owners);
            uint256 leaves = parts.leaf;
            uint256 end = place + data.length;
            _hashPlain(parts, end);
            _hashAny(parts);
            // The last records may have been read past the end.
            if (parts.continuation != end) revert BatchDataInvalid(data.length);
            content = LeafTree.fold(leaves, vaultCount);
        }
    }

    /// @dev Free memory that stays unallocated gets the owners, then has the workspace, then the
    /// leaves. Nothing else may allocate memory while they are in use.
    function _readOwners(Parts memory parts, uint256 from, uint256 count) private pure {
        uint256 owners;
        uint256 workspace;
        assembly ("memory-safe") {
            owners := mload(0x40)
            mstore(owners, 0)
            workspace := owners
            for {
                let end := add(from, mul(count, OWNER_BYTES))
            } lt(from, end) {
                from := add(from, OWNER_BYTES)
            } {
                mstore(workspace, shl(80, shr(96, calldataload(from))))
                workspace := add(workspace, 32)
            }
            if iszero(count) {
                workspace := add(workspace, 32)
            }
        }
        (parts.owners, parts.workspace, parts.leaf) = (owners, workspace, workspace + LEAVES);
    }

    /// @dev Hashes all records, if they have owners in front of them and no continuations. Most
    /// batches take this loop, so it reads nothing that they lack, and checks them once behind it.
    /// @param end The end of the data.
    function _hashPlain(Parts memory parts, uint256 end) private pure {
        unchecked {
            if (parts.places == 0 || parts.recordsEnd != end) return;
            (uint256 record, uint256 size, uint256 right) = (
                parts.record,
                parts.recordBytes,
                parts.right
            );
            (uint256 owners, uint256 workspace) = (parts.owners, parts.workspace);
            (uint256 vaultId, uint256 leaf) = (parts.vaultId, parts.leaf);
            uint256 flaws;
            assembly ("memory-safe") {
                mstore(workspace, sub(vaultId, 1))
                for {} lt(record, end) {} {
                    let word := calldataload(record)
                    let owner := add(owners, and(shr(OWNER_PLACE, word), PLACES))
                    flaws := or(flaws, or(and(word, COUNT_BITS), iszero(lt(owner, workspace))))
                    mstore(workspace, add(mload(workspace), 1))
                    mstore(
                        add(workspace, 32),
                        or(or(and(word, KEPT), mload(owner)), shr(right, shl(32, word)))
                    )
                    mstore(leaf, keccak256(add(workspace, 23), 41))
                    record := add(record, size)
                    leaf := add(leaf, 32)
                }
                vaultId := add(mload(workspace), 1)
            }
            if (flaws != 0) revert BatchDataInvalid(parts.record - parts.data);
            (parts.record, parts.vaultId, parts.leaf) = (record, vaultId, leaf);
        }
    }

    /// @dev Hashes all records that are left, of any batch.
    function _hashAny(Parts memory parts) private pure {
        unchecked {
            (uint256 record, uint256 size, uint256 end) = (
                parts.record,
                parts.recordBytes,
                parts.recordsEnd
            );
            (uint256 workspace, uint256 vaultId, uint256 leaf) = (
                parts.workspace,
                parts.vaultId,
                parts.leaf
            );
            for (; record < end; record += size) {
                uint256 word;
                uint256 owner = parts.owners;
                assembly ("memory-safe") {
                    word := calldataload(record)
                }
                owner += (word >> OWNER_PLACE) & parts.places;
                if (owner >= workspace) revert BatchDataInvalid(record - parts.data);
                uint256 head = (word & parts.kept) | ((word << parts.left) >> parts.right);
                uint256 length = ((word >> 248) & 0xf) * CONTINUATION_BYTES;
                uint256 continuation = parts.continuation;
                parts.continuation = continuation + length;
                assembly ("memory-safe") {
                    mstore(workspace, vaultId)
                    mstore(add(workspace, 32), or(head, mload(owner)))
                    calldatacopy(add(workspace, 64), continuation, length)
                    mstore(leaf, keccak256(add(workspace, 23), add(length, 41)))
                }
                ++vaultId;
                leaf += 32;
            }
        }
    }

    /// @dev The 32 bytes from `cursor` on. Past the end of the data they are any bytes; a later
    /// check refuses such a read.
    function _word(bytes calldata data, uint256 cursor) private pure returns (uint256 word) {
        assembly ("memory-safe") {
            word := calldataload(add(data.offset, cursor))
        }
    }
}
