// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {Standard} from "../interfaces/IStateCommitment.sol";

/// @title From a batch's data to its Merkle root.
/// @notice Decodes the grammar of docs/protocol.md 4 straight from calldata, hashing each vault's leaf as it goes, then folds the leaves.
/// Assembly, because a batch's price is this loop: about 130 gas a leaf and 95 a node.
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
        Range
    }

    /// @notice The data breaks the grammar, at or shortly before this offset.
    error BatchDataInvalid(Fault fault, uint256 offset);

    uint256 private constant DICTIONARY_ASSET = 40;
    uint256 private constant DICTIONARY_OWNER = 20;
    uint256 private constant VOID_RUN = 0xffff;
    uint256 private constant LEAF_HEAD = 77;

    /// @dev A run's header, and where things are in calldata. One memory struct, so that the hot loop can read it without the stack.
    struct Run {
        uint256 length;
        uint256 ownerForm;
        uint256 blobForm;
        uint256 amountBytes;
        uint256 digits;
        uint256 chainId;
        uint256 owner;
        uint256 owners;
        uint256 ownerCount;
        /// @dev ASCII, left-aligned: the text of the next vault of a consecutive run.
        uint256 text;
        /// @dev The leaf's preimage.
        uint256 template;
    }

    /// @notice The assets of the data's dictionary, in its order.
    /// @return chainIds The chain of each.
    /// @return assetTypes The StarkEx asset type of each.
    function assets(bytes calldata data) internal pure returns (uint64[] memory chainIds, uint256[] memory assetTypes) {
        if (data.length < 5) revert BatchDataInvalid(Fault.Truncated, data.length);
        if (data[0] != 0x01) revert BatchDataInvalid(Fault.Version, 0);
        uint256 count = uint16(bytes2(data[1:3]));
        if (data.length < 5 + count * DICTIONARY_ASSET) revert BatchDataInvalid(Fault.Truncated, data.length);
        chainIds = new uint64[](count);
        assetTypes = new uint256[](count);
        for (uint256 i; i < count; ++i) {
            uint256 at = 3 + i * DICTIONARY_ASSET;
            chainIds[i] = uint64(bytes8(data[at:at + 8]));
            assetTypes[i] = uint256(bytes32(data[at + 8:at + DICTIONARY_ASSET]));
        }
    }

    /// @notice The root of the batch's tree, and how many slots it has.
    /// @param data The whole batch data; its dictionary of assets has been read by {assets}.
    /// @param firstVaultId Vault id of slot 0.
    /// @param standards The registered standard of each asset of the dictionary.
    /// @param maxVaults Most slots.
    function root(
        bytes calldata data,
        uint64 firstVaultId,
        uint64[] memory chainIds,
        uint256[] memory assetTypes,
        Standard[] memory standards,
        uint256 maxVaults
    ) internal pure returns (bytes32 batchRoot, uint256 vaultCount) {
        Run memory run;
        uint256 leaves;
        (run.template, leaves) = _workspace();
        uint256 cursor = 3 + chainIds.length * DICTIONARY_ASSET;
        run.ownerCount = uint16(bytes2(data[cursor:cursor + 2]));
        cursor += 2;
        assembly ("memory-safe") {
            mstore(add(run, 0xe0), add(data.offset, cursor))
        }
        cursor += run.ownerCount * DICTIONARY_OWNER;
        if (cursor >= data.length) {
            revert BatchDataInvalid(cursor == data.length ? Fault.Empty : Fault.Truncated, data.length);
        }
        while (cursor < data.length) {
            uint256 asset;
            (asset, cursor) = _readRun(data, cursor, run);
            if (vaultCount + run.length > maxVaults) revert BatchDataInvalid(Fault.TooManyVaults, cursor);
            uint256 target = leaves + 32 * vaultCount;
            if (asset != VOID_RUN) {
                if (asset >= chainIds.length) revert BatchDataInvalid(Fault.AssetIndex, cursor);
                _checkForms(standards[asset], run, cursor);
                _startTemplate(run, chainIds[asset], assetTypes[asset]);
                cursor = _hashRun(data, cursor, run, firstVaultId + vaultCount, target);
            } else {
                _zero(target, run.length);
            }
            vaultCount += run.length;
        }
        if (cursor != data.length) revert BatchDataInvalid(Fault.Truncated, cursor);
        batchRoot = _fold(leaves, vaultCount);
    }

    /// @dev Room past the free memory pointer that stays unallocated: the template of a leaf's preimage, then the leaves. Nothing else
    /// may allocate while they are in use.
    function _workspace() private pure returns (uint256 template, uint256 leaves) {
        assembly ("memory-safe") {
            template := add(mload(0x40), 0x40)
            leaves := add(template, 0x1c0)
        }
    }

    function _readRun(bytes calldata data, uint256 cursor, Run memory run) private pure returns (uint256 asset, uint256 next) {
        if (cursor + 6 > data.length) revert BatchDataInvalid(Fault.Truncated, cursor);
        uint256 head = uint48(bytes6(data[cursor:cursor + 6]));
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
        if (run.length == 0) revert BatchDataInvalid(Fault.Empty, cursor);
    }

    function _readRunOptions(bytes calldata data, uint256 cursor, Run memory run) private pure returns (uint256) {
        if (run.ownerForm == 3) {
            if (cursor + 2 > data.length) revert BatchDataInvalid(Fault.Truncated, cursor);
            uint256 index = uint16(bytes2(data[cursor:cursor + 2]));
            if (index >= run.ownerCount) revert BatchDataInvalid(Fault.OwnerIndex, cursor);
            uint256 owners = run.owners;
            uint256 owner;
            assembly ("memory-safe") {
                owner := shr(96, calldataload(add(owners, mul(index, 20))))
            }
            run.owner = owner;
            cursor += 2;
        }
        run.digits = 0;
        if (run.blobForm < 2) return cursor;
        if (cursor + 1 > data.length) revert BatchDataInvalid(Fault.Truncated, cursor);
        uint256 digits = uint8(data[cursor]);
        if (digits == 0 || digits > 32) revert BatchDataInvalid(Fault.Digits, cursor);
        run.digits = digits;
        cursor += 1;
        if (run.blobForm == 2) return cursor;
        uint256 bytes_ = (digits + 1) / 2;
        if (cursor + bytes_ > data.length) revert BatchDataInvalid(Fault.Truncated, cursor);
        uint256 packed = uint256(bytes32(data[cursor:cursor + bytes_])) >> (256 - 8 * bytes_);
        (uint256 text, bool valid) = _expand(packed, digits);
        if (!valid) revert BatchDataInvalid(Fault.Digits, cursor);
        run.text = text;
        return cursor + bytes_;
    }

    function _checkForms(Standard standard, Run memory run, uint256 cursor) private pure {
        if (run.amountBytes > 8 || (standard == Standard.ERC721 && run.amountBytes != 0)) {
            revert BatchDataInvalid(Fault.AmountForm, cursor);
        }
        if ((standard == Standard.ERC20) != (run.blobForm == 0)) revert BatchDataInvalid(Fault.BlobForm, cursor);
    }

    /// @dev Template: 0x00 ‖ vaultId(8) ‖ chainId(8) ‖ owner(20) ‖ assetType(32) ‖ amount(8) ‖ blob. Fields are written from the last to the
    /// first, each by a whole word whose leading zeros fall on bytes that a later write fills.
    function _startTemplate(Run memory run, uint256 chainId, uint256 assetType) private pure {
        run.chainId = chainId << 160;
        uint256 template = run.template;
        uint256 chainAndOwner = run.chainId | run.owner;
        uint256 text = run.text;
        assembly ("memory-safe") {
            mstore(add(template, 77), text)
            mstore(add(template, 45), 1)
            mstore(add(template, 37), assetType)
            mstore(add(template, 5), chainAndOwner)
        }
    }

    /// @dev The ASCII text of `digits` packed decimal digits, left-aligned; nibbles spread to bytes by doubling the gaps between them.
    function _expand(uint256 packed, uint256 digits) private pure returns (uint256 text, bool valid) {
        assembly ("memory-safe") {
            let x := packed
            x := and(or(x, shl(64, x)), 0x0000000000000000ffffffffffffffff0000000000000000ffffffffffffffff)
            x := and(or(x, shl(32, x)), 0x00000000ffffffff00000000ffffffff00000000ffffffff00000000ffffffff)
            x := and(or(x, shl(16, x)), 0x0000ffff0000ffff0000ffff0000ffff0000ffff0000ffff0000ffff0000ffff)
            x := and(or(x, shl(8, x)), 0x00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff)
            x := and(or(x, shl(4, x)), 0x0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f)
            let top := shr(mul(8, sub(digits, 1)), x)
            // No nibble above 9; nothing in front of the first digit; the first digit is not 0 unless it is the only one.
            valid := iszero(and(add(x, mul(6, div(not(0), 255))), mul(0x10, div(not(0), 255))))
            valid := and(valid, lt(top, 0x10))
            valid := and(valid, or(eq(digits, 1), gt(top, 0)))
            text := shl(mul(8, sub(32, digits)), add(x, mul(0x30, div(not(0), 255))))
        }
    }

    /// @dev Hashes the run's leaves to `target` and returns the cursor behind its records. Reading past the end of calldata gives zeros
    /// and is caught when the cursor is compared with the end.
    function _hashRun(bytes calldata data, uint256 cursor, Run memory run, uint256 vaultId, uint256 target) private pure returns (uint256) {
        if (run.blobForm == 3 && run.ownerForm == 3 && run.amountBytes == 0) {
            _hashRange(run, vaultId, target, cursor);
            return cursor;
        }
        uint256 fault;
        assembly ("memory-safe") {
            function expand(packed, digits) -> text, valid {
                let x := packed
                x := and(or(x, shl(64, x)), 0x0000000000000000ffffffffffffffff0000000000000000ffffffffffffffff)
                x := and(or(x, shl(32, x)), 0x00000000ffffffff00000000ffffffff00000000ffffffff00000000ffffffff)
                x := and(or(x, shl(16, x)), 0x0000ffff0000ffff0000ffff0000ffff0000ffff0000ffff0000ffff0000ffff)
                x := and(or(x, shl(8, x)), 0x00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff)
                x := and(or(x, shl(4, x)), 0x0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f)
                let top := shr(shl(3, sub(digits, 1)), x)
                valid := and(
                    iszero(
                        and(
                            add(x, 0x0606060606060606060606060606060606060606060606060606060606060606),
                            0x1010101010101010101010101010101010101010101010101010101010101010
                        )
                    ),
                    and(lt(top, 0x10), or(eq(digits, 1), gt(top, 0)))
                )
                text := shl(shl(3, sub(32, digits)), add(x, 0x3030303030303030303030303030303030303030303030303030303030303030))
            }

            let template := mload(add(run, 0x140))
            let ownerForm := mload(add(run, 0x20))
            let blobForm := mload(add(run, 0x40))
            let amountBytes := mload(add(run, 0x60))
            let from := add(data.offset, cursor)
            let limit := add(target, shl(5, mload(run)))
            let size := add(77, mload(add(run, 0x80)))
            for {} lt(target, limit) { target := add(target, 32) } {
                switch ownerForm
                case 1 {
                    let index := byte(0, calldataload(from))
                    if iszero(lt(index, mload(add(run, 0x100)))) {
                        fault := 7
                        break
                    }
                    mstore(add(template, 5), or(mload(add(run, 0xa0)), shr(96, calldataload(add(mload(add(run, 0xe0)), mul(index, 20))))))
                    from := add(from, 1)
                }
                case 0 {
                    mstore(add(template, 5), or(mload(add(run, 0xa0)), shr(96, calldataload(from))))
                    from := add(from, 20)
                }
                case 2 {
                    let index := shr(240, calldataload(from))
                    if iszero(lt(index, mload(add(run, 0x100)))) {
                        fault := 7
                        break
                    }
                    mstore(add(template, 5), or(mload(add(run, 0xa0)), shr(96, calldataload(add(mload(add(run, 0xe0)), mul(index, 20))))))
                    from := add(from, 2)
                }
                if amountBytes {
                    let amount := shr(sub(256, shl(3, amountBytes)), calldataload(from))
                    if iszero(lt(sub(amount, 1), 0x7fffffffffffffff)) {
                        fault := 9
                        break
                    }
                    mstore(add(template, 69), shl(192, amount))
                    from := add(from, amountBytes)
                }
                switch blobForm
                case 2 {
                    let digits := sub(size, 77)
                    let width := shr(1, add(digits, 1))
                    let text, valid := expand(shr(sub(256, shl(3, width)), calldataload(from)), digits)
                    if iszero(valid) {
                        fault := 12
                        break
                    }
                    mstore(add(template, 77), text)
                    from := add(from, width)
                }
                case 1 {
                    let length := byte(0, calldataload(from))
                    if iszero(length) {
                        fault := 11
                        break
                    }
                    from := add(from, 1)
                    calldatacopy(add(template, 77), from, length)
                    from := add(from, length)
                    size := add(77, length)
                }
                case 3 {
                    let text := mload(add(run, 0x120))
                    if iszero(text) {
                        fault := 13
                        break
                    }
                    mstore(add(template, 77), text)
                    // The text of the next one; zero when there is none of as many digits.
                    let at := shl(3, sub(109, size))
                    text := add(text, shl(at, 1))
                    for {} eq(and(shr(at, text), 0xff), 0x3a) {} {
                        text := sub(text, shl(at, 10))
                        at := add(at, 8)
                        if eq(at, 256) {
                            text := 0
                            break
                        }
                        text := add(text, shl(at, 1))
                    }
                    mstore(add(run, 0x120), text)
                }
                mstore(sub(template, 23), vaultId)
                mstore(target, keccak256(template, size))
                vaultId := add(vaultId, 1)
            }
            cursor := sub(from, data.offset)
        }
        if (fault != 0) revert BatchDataInvalid(Fault(fault - 1), cursor);
        if (cursor > data.length) revert BatchDataInvalid(Fault.Truncated, data.length);
        return cursor;
    }

    /// @dev The tight loop for consecutive ids of one owner: two words change from leaf to leaf.
    function _hashRange(Run memory run, uint256 vaultId, uint256 target, uint256 cursor) private pure {
        uint256 template = run.template;
        uint256 digits = run.digits;
        uint256 text = run.text;
        uint256 length = run.length;
        bool overflow;
        assembly ("memory-safe") {
            let last := sub(256, shl(3, digits))
            let unit := shl(last, 1)
            let size := add(77, digits)
            let idAt := sub(template, 23)
            let textAt := add(template, 77)
            let limit := add(target, shl(5, length))
            for {} 1 {} {
                mstore(idAt, vaultId)
                mstore(textAt, text)
                mstore(target, keccak256(template, size))
                target := add(target, 32)
                if eq(target, limit) { break }
                vaultId := add(vaultId, 1)
                text := add(text, unit)
                if eq(and(shr(last, text), 0xff), 0x3a) {
                    let at := last
                    for {} eq(and(shr(at, text), 0xff), 0x3a) {} {
                        text := sub(text, shl(at, 10))
                        at := add(at, 8)
                        if eq(at, 256) {
                            overflow := 1
                            break
                        }
                        text := add(text, shl(at, 1))
                    }
                    if overflow { break }
                }
            }
        }
        if (overflow) revert BatchDataInvalid(Fault.Range, cursor);
    }

    function _zero(uint256 target, uint256 length) private pure {
        assembly ("memory-safe") {
            // Past the end of calldata reads as zero.
            calldatacopy(target, calldatasize(), shl(5, length))
        }
    }

    /// @dev Folds the leaves in place, level by level. Each pair's prefix goes into the byte in front of it, which the pair before has
    /// consumed; each parent goes where its children, or earlier ones, were.
    function _fold(uint256 leaves, uint256 count) private pure returns (bytes32 result) {
        assembly ("memory-safe") {
            let zero := 0
            for {} gt(count, 1) {} {
                if and(count, 1) {
                    mstore(add(leaves, shl(5, count)), zero)
                    count := add(count, 1)
                }
                let to := leaves
                let limit := add(leaves, shl(5, count))
                for { let pair := leaves } lt(pair, limit) { pair := add(pair, 64) } {
                    mstore8(sub(pair, 1), 1)
                    mstore(to, keccak256(sub(pair, 1), 65))
                    to := add(to, 32)
                }
                count := shr(1, count)
                mstore8(limit, 1)
                mstore(add(limit, 1), zero)
                mstore(add(limit, 33), zero)
                zero := keccak256(limit, 65)
            }
            result := mload(leaves)
        }
    }
}
