// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {Standard} from "../interfaces/Model.sol";
import {DigitText} from "./DigitText.sol";
import {LeafTree} from "./LeafTree.sol";
import {Manifest} from "./Manifest.sol";

/// @title Computes a batch's Merkle root from its data.
/// @notice Decodes the grammar of docs/protocol.md 4 from calldata, hashes the leaf of each vault,
/// then folds the leaves. It is in assembly because this loop is the price of a batch: about 130
/// gas a leaf and 85 a node. Arithmetic is unchecked: every number is at most a length of calldata,
/// a count below 2^24, or masked.
library BatchData {
    enum Fault {
        Version,
        Truncated,
        Trailing,
        Empty,
        TooManyVaults,
        AssetIndex,
        OwnerIndex,
        AmountForm,
        Amount,
        BlobForm,
        BlobLength,
        Digits,
        Range,
        AssetUnused
    }

    /// @notice The data breaks the grammar, at or shortly before this offset.
    error BatchDataInvalid(Fault fault, uint256 offset);

    /// @dev version:u8 assetCount:u16.
    uint256 private constant HEAD_BYTES = 3;
    uint256 private constant DICTIONARY_OWNER = 20;
    uint256 private constant VOID_RUN = 0xffff;
    /// @dev A leaf's preimage: 0x00 ‖ vaultId(8) ‖ chainId(8) ‖ owner(20) ‖ assetType(32) ‖
    /// amount(8) ‖ blob. Each field is written as a whole word that ends where the field ends, at
    /// the offset here. A later write fills the bytes under the word's leading zeros.
    uint256 private constant LEAF_OWNER = 5;
    uint256 private constant LEAF_ASSET = 37;
    uint256 private constant LEAF_AMOUNT = 45;
    /// @dev Offset of the amount's eight bytes.
    uint256 private constant LEAF_AMOUNT_BYTES = 69;
    uint256 private constant LEAF_BLOB = 77;
    /// @dev Distance before the start of the preimage, of the word that ends with the vault id.
    uint256 private constant ID_BEFORE_LEAF = 23;

    /// @dev Offsets of the fields of a {Run} in memory: a word each, in the order of the struct.
    uint256 private constant RUN_CHAIN_ID = 0xa0;
    uint256 private constant RUN_OWNERS = 0x100;

    /// @dev A run's header, and the places of its parts in calldata. It is a memory struct, so that
    /// the hot loop needs no stack for it.
    struct Run {
        uint256 length;
        uint256 ownerForm;
        uint256 blobForm;
        uint256 amountBytes;
        /// @dev Length of every blob of the run; 0 when each raw blob has its own length.
        uint256 blobLength;
        /// @dev The chain id, shifted to stand before an owner's 20 bytes.
        uint256 chainId;
        uint256 owner;
        uint256 ownerIndex;
        /// @dev The dictionary in memory: a word for each owner, as the template takes it.
        uint256 owners;
        uint256 ownerCount;
        /// @dev ASCII, left-aligned: the text of the next vault of a consecutive run.
        uint256 text;
        /// @dev The leaf's preimage.
        uint256 template;
    }

    /// @notice The data's table of assets, packed as {Manifest} reads it. {Manifest} checks their
    /// order and number.
    function assets(bytes calldata data) internal pure returns (bytes calldata packed) {
        unchecked {
            if (data.length < HEAD_BYTES + 2) _fail(Fault.Truncated, data.length);
            if (_word(data, 0) >> 248 != 1) _fail(Fault.Version, 0);
            uint256 size = (_word(data, 1) >> 240) * Manifest.ASSET_BYTES;
            if (data.length < HEAD_BYTES + 2 + size) _fail(Fault.Truncated, data.length);
            assembly ("memory-safe") {
                packed.offset := add(data.offset, HEAD_BYTES)
                packed.length := size
            }
        }
    }

    /// @notice The root of the batch's vault tree, and how many slots it has.
    /// @param data The whole batch data. {assets} has read its assets, which are at most 255.
    /// @param firstVaultId Vault id of slot 0.
    /// @param terms The registry's word of each asset, whose lowest byte is the standard. Each
    /// asset must have a vault in the batch.
    /// @param maxVaults Most slots.
    function root(
        bytes calldata data,
        uint64 firstVaultId,
        uint256[] memory terms,
        uint256 maxVaults
    ) internal pure returns (bytes32 content, uint256 vaultCount) {
        unchecked {
            Run memory run;
            uint256 leaves;
            uint256 used;
            uint256 cursor = _readOwners(
                data,
                HEAD_BYTES + terms.length * Manifest.ASSET_BYTES,
                run
            );
            (run.template, leaves) = _workspace();
            while (cursor < data.length) {
                uint256 asset;
                (asset, cursor) = _readRun(data, cursor, run);
                if (vaultCount + run.length > maxVaults) _fail(Fault.TooManyVaults, cursor);
                uint256 target = leaves + 32 * vaultCount;
                if (asset != VOID_RUN) {
                    if (asset >= terms.length) _fail(Fault.AssetIndex, cursor);
                    used |= 1 << asset;
                    _checkForms(Standard(uint8(terms[asset])), run, cursor);
                    _startTemplate(data, asset, run);
                    cursor = _hashRun(data, cursor, run, firstVaultId + vaultCount, target);
                } else {
                    _zero(target, run.length);
                }
                vaultCount += run.length;
            }
            // The last run may have read past the end, as zeros.
            if (cursor != data.length) _fail(Fault.Truncated, data.length);
            if (used + 1 != 1 << terms.length) _fail(Fault.AssetUnused, HEAD_BYTES);
            content = LeafTree.fold(leaves, vaultCount);
        }
    }

    /// @dev The only revert of this library. Two dozen would take a twentieth of the contract's
    /// size.
    function _fail(Fault fault, uint256 offset) private pure {
        revert BatchDataInvalid(fault, offset);
    }

    /// @dev The 32 bytes from `cursor` on. Past the end of calldata they are zeros, and past the
    /// end of `data` any bytes. A later check of the cursor refuses such a read.
    function _word(bytes calldata data, uint256 cursor) private pure returns (uint256 word) {
        assembly ("memory-safe") {
            word := calldataload(add(data.offset, cursor))
        }
    }

    function _readOwners(
        bytes calldata data,
        uint256 cursor,
        Run memory run
    ) private pure returns (uint256) {
        unchecked {
            uint256 count = _word(data, cursor) >> 240;
            cursor += 2;
            uint256 end = cursor + count * DICTIONARY_OWNER;
            if (end >= data.length)
                _fail(end == data.length ? Fault.Empty : Fault.Truncated, data.length);
            run.ownerCount = count;
            assembly ("memory-safe") {
                let to := mload(0x40)
                mstore(add(run, RUN_OWNERS), to)
                let from := add(data.offset, cursor)
                let limit := add(data.offset, end)
                for {} lt(from, limit) {
                    from := add(from, 20)
                } {
                    mstore(to, shr(96, calldataload(from)))
                    to := add(to, 32)
                }
                mstore(0x40, to)
            }
            return end;
        }
    }

    /// @dev Free memory that stays unallocated: the template of a leaf's preimage, then the leaves.
    /// Nothing else may allocate memory while they are in use.
    function _workspace() private pure returns (uint256 template, uint256 leaves) {
        assembly ("memory-safe") {
            template := add(mload(0x40), 0xc0)
            leaves := add(template, 0x2c0)
        }
    }

    function _readRun(
        bytes calldata data,
        uint256 cursor,
        Run memory run
    ) private pure returns (uint256 asset, uint256 next) {
        unchecked {
            uint256 head = _word(data, cursor) >> 208;
            asset = head >> 32;
            if (asset == VOID_RUN) {
                run.length = (head >> 8) & 0xffffff;
                next = cursor + 5;
            } else {
                run.length = head & 0xffffff;
                run.ownerForm = (head >> 24) & 3;
                run.blobForm = (head >> 26) & 3;
                run.amountBytes = (head >> 28) & 0xf;
                next = _readRunOptions(data, cursor + 6, run);
            }
            if (next > data.length) _fail(Fault.Truncated, cursor);
            if (run.length == 0) _fail(Fault.Empty, cursor);
        }
    }

    function _readRunOptions(
        bytes calldata data,
        uint256 cursor,
        Run memory run
    ) private pure returns (uint256) {
        unchecked {
            if (run.ownerForm == 3) {
                uint256 index = _word(data, cursor) >> 240;
                if (index >= run.ownerCount) _fail(Fault.OwnerIndex, cursor);
                uint256 owners = run.owners;
                uint256 owner;
                assembly ("memory-safe") {
                    owner := mload(add(owners, shl(5, index)))
                }
                run.owner = owner;
                run.ownerIndex = index;
                cursor += 2;
            }
            run.blobLength = 0;
            if (run.blobForm == 0) return cursor;
            uint256 digits = _word(data, cursor) >> 248;
            run.blobLength = digits;
            cursor += 1;
            if (run.blobForm == 1) return cursor;
            if (digits == 0 || digits > 32) _fail(Fault.Digits, cursor);
            if (run.blobForm == 2) return cursor;
            uint256 bytes_ = (digits + 1) / 2;
            uint256 packed = _word(data, cursor) >> (256 - 8 * bytes_);
            if (!DigitText.isDecimal(packed, digits)) _fail(Fault.Digits, cursor);
            run.text = DigitText.expand(packed, digits);
            return cursor + bytes_;
        }
    }

    function _checkForms(Standard standard, Run memory run, uint256 cursor) private pure {
        if (run.amountBytes > 8 || (standard == Standard.ERC721 && run.amountBytes != 0)) {
            _fail(Fault.AmountForm, cursor);
        }
        if ((standard == Standard.ERC20) != (run.blobForm == 0)) _fail(Fault.BlobForm, cursor);
    }

    /// @dev Writes a leaf's preimage, field by field from the last to the first. A later write
    /// fills the bytes under a word's leading zeros.
    function _startTemplate(bytes calldata data, uint256 asset, Run memory run) private pure {
        uint256 place = HEAD_BYTES + asset * Manifest.ASSET_BYTES;
        uint256 assetType = _word(data, place + 8);
        run.chainId = (_word(data, place) >> 192) << 160;
        uint256 template = run.template;
        uint256 chainAndOwner = run.chainId | run.owner;
        uint256 text = run.text;
        assembly ("memory-safe") {
            mstore(add(template, LEAF_BLOB), text)
            mstore(add(template, LEAF_AMOUNT), 1)
            mstore(add(template, LEAF_ASSET), assetType)
            mstore(add(template, LEAF_OWNER), chainAndOwner)
        }
    }

    /// @dev Hashes the run's leaves to `target` and returns the cursor behind its records. Reads
    /// past the end of calldata give zeros, and a later check of the cursor refuses them.
    function _hashRun(
        bytes calldata data,
        uint256 cursor,
        Run memory run,
        uint256 vaultId,
        uint256 target
    ) private pure returns (uint256) {
        if (run.amountBytes == 0 && run.blobForm == 3 && run.ownerForm == 3) {
            _hashRange(run, vaultId, target, cursor);
            return cursor;
        }
        return _hashAny(data, cursor, run, vaultId, target);
    }

    /// @dev Any other run. What is the same for all of its records is read once, because this loop
    /// is the price of a vault.
    function _hashAny(
        bytes calldata data,
        uint256 cursor,
        Run memory run,
        uint256 vaultId,
        uint256 target
    ) private pure returns (uint256) {
        unchecked {
            uint256 template = run.template;
            uint256 ownerForm = run.ownerForm;
            uint256 blobForm = run.blobForm;
            uint256 length = run.blobLength;
            // Of packed digits.
            uint256 width = (length + 1) / 2;
            uint256 end = target + 32 * run.length;
            for (; target < end; target += 32) {
                if (ownerForm == 0) {
                    uint256 owner = run.chainId | (_word(data, cursor) >> 96);
                    assembly ("memory-safe") {
                        mstore(add(template, LEAF_OWNER), owner)
                    }
                    cursor += 20;
                } else if (ownerForm != 3) {
                    uint256 index = _word(data, cursor) >> (256 - 8 * ownerForm);
                    if (index >= run.ownerCount) _fail(Fault.OwnerIndex, cursor);
                    assembly ("memory-safe") {
                        let owner := mload(add(mload(add(run, RUN_OWNERS)), shl(5, index)))
                        mstore(add(template, LEAF_OWNER), or(mload(add(run, RUN_CHAIN_ID)), owner))
                    }
                    cursor += ownerForm;
                }
                if (run.amountBytes != 0) cursor = _readAmount(data, cursor, run);
                if (blobForm == 2) {
                    uint256 packed = _word(data, cursor) >> (256 - 8 * width);
                    if (packed >> (4 * length) != 0) _fail(Fault.Digits, cursor);
                    cursor += width;
                    _writeText(template, DigitText.expand(packed, length));
                } else if (blobForm == 1) {
                    if (run.blobLength == 0) {
                        length = _word(data, cursor) >> 248;
                        if (length == 0) _fail(Fault.BlobLength, cursor);
                        ++cursor;
                    }
                    assembly ("memory-safe") {
                        calldatacopy(add(template, LEAF_BLOB), add(data.offset, cursor), length)
                    }
                    cursor += length;
                } else if (blobForm == 3) {
                    if (run.text == 0) _fail(Fault.Range, cursor);
                    _writeText(template, run.text);
                    run.text = DigitText.successor(run.text, length);
                }
                assembly ("memory-safe") {
                    mstore(sub(template, ID_BEFORE_LEAF), vaultId)
                    mstore(target, keccak256(template, add(LEAF_BLOB, length)))
                }
                ++vaultId;
            }
            return cursor;
        }
    }

    function _writeText(uint256 template, uint256 text) private pure {
        assembly ("memory-safe") {
            mstore(add(template, LEAF_BLOB), text)
        }
    }

    /// @dev The amount's word covers the blob's first bytes, so the blob is written after it.
    function _readAmount(
        bytes calldata data,
        uint256 cursor,
        Run memory run
    ) private pure returns (uint256) {
        unchecked {
            uint256 width = run.amountBytes;
            uint256 template = run.template;
            uint256 amount;
            assembly ("memory-safe") {
                amount := shr(sub(256, shl(3, width)), calldataload(add(data.offset, cursor)))
                mstore(add(template, LEAF_AMOUNT_BYTES), shl(192, amount))
            }
            if (amount == 0 || amount > uint64(type(int64).max)) _fail(Fault.Amount, cursor);
            return cursor + width;
        }
    }

    /// @dev The loop for consecutive ids of one owner. Two words change from leaf to leaf. It takes
    /// five leaves at a time, because the loop itself costs a fifth of a leaf.
    function _hashRange(
        Run memory run,
        uint256 vaultId,
        uint256 target,
        uint256 cursor
    ) private pure {
        uint256 template = run.template;
        uint256 digits = run.blobLength;
        uint256 text = run.text;
        uint256 length = run.length;
        bool overflow;
        assembly ("memory-safe") {
            let last := sub(256, shl(3, digits))
            let unit := shl(last, 1)
            let size := add(LEAF_BLOB, digits)
            let idAt := sub(template, ID_BEFORE_LEAF)
            let textAt := add(template, LEAF_BLOB)
            let limit := add(target, shl(5, length))
            for {} 1 {} {
                // Nothing is carried until the last digit passes 9.
                let stretch := add(target, shl(5, sub(0x3a, and(shr(last, text), 0xff))))
                if gt(stretch, limit) {
                    stretch := limit
                }
                for {} lt(add(target, 128), stretch) {
                    target := add(target, 160)
                } {
                    mstore(idAt, vaultId)
                    mstore(textAt, text)
                    mstore(target, keccak256(template, size))
                    text := add(text, unit)
                    mstore(idAt, add(vaultId, 1))
                    mstore(textAt, text)
                    mstore(add(target, 32), keccak256(template, size))
                    text := add(text, unit)
                    mstore(idAt, add(vaultId, 2))
                    mstore(textAt, text)
                    mstore(add(target, 64), keccak256(template, size))
                    text := add(text, unit)
                    mstore(idAt, add(vaultId, 3))
                    mstore(textAt, text)
                    mstore(add(target, 96), keccak256(template, size))
                    text := add(text, unit)
                    mstore(idAt, add(vaultId, 4))
                    mstore(textAt, text)
                    mstore(add(target, 128), keccak256(template, size))
                    text := add(text, unit)
                    vaultId := add(vaultId, 5)
                }
                for {} lt(target, stretch) {} {
                    mstore(idAt, vaultId)
                    mstore(textAt, text)
                    mstore(target, keccak256(template, size))
                    target := add(target, 32)
                    vaultId := add(vaultId, 1)
                    text := add(text, unit)
                }
                if eq(target, limit) {
                    break
                }
                // The digit past 9 becomes 0 and the next one rises by one, until no digit is past
                // 9.
                let place := last
                for {} 1 {} {
                    text := add(text, shl(place, 0xf6))
                    place := add(place, 8)
                    overflow := eq(place, 256)
                    if or(overflow, lt(and(shr(place, text), 0xff), 0x3a)) {
                        break
                    }
                }
                if overflow {
                    break
                }
            }
        }
        if (overflow) _fail(Fault.Range, cursor);
    }

    function _zero(uint256 target, uint256 length) private pure {
        assembly ("memory-safe") {
            // Past the end of calldata reads as zero.
            calldatacopy(target, calldatasize(), shl(5, length))
        }
    }
}
