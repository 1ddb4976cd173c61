// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {SLOT_MASK, Vault} from "../interfaces/Model.sol";
import {Manifest} from "./Manifest.sol";
import {MintingBlob} from "./MintingBlob.sol";

/// @title Vaults as field elements of EIP-4844 blobs; docs/protocol.md 4.
/// @notice Makes a vault's elements, and lets the point evaluation precompile compare them with the
/// blobs. It decodes no element. So an element that is not exactly the encoding of a vault pays
/// nobody.
library BlobVaults {
    /// @dev What the header and an asset's path in the manifest say about the batch.
    struct Batch {
        bytes32 batchRoot;
        bytes32 manifestRoot;
        uint256 vaultCount;
    }

    /// @notice The transaction has no blob, or more than a batch takes.
    error BlobCountInvalid(uint256 count);
    /// @notice The chain has no precompile that could ever open an element.
    error NoPointEvaluation();

    uint256 internal constant BLOB_ELEMENTS = 4096;
    uint256 internal constant MAX_BLOBS = 6;
    uint256 private constant KIND = 2;

    /// @dev The scalar field of BLS12-381 has this modulus. Blobs are polynomials over it.
    uint256 private constant MODULUS =
        0x73eda753299d7d483339d80809a1d80553bda402fffe5bfeffffffff00000001;
    /// @dev 7^((MODULUS - 1) / 4096). A blob's elements are its polynomial's values at the powers
    /// of this number, in bit-reversed order.
    uint256 private constant ROOT_OF_UNITY =
        0x564c0a11a0f704f4fc3e8acfe0f8245f0ad1347b378fbf96e206da11a5d36306;
    uint256 private constant POINT_EVALUATION = 0x0a;
    uint256 private constant EVALUATION_GAS = 100_000;
    /// @dev An opening has three words in a path: commitment(48) ‖ proof(48).
    uint256 private constant OPENING_WORDS = 3;
    /// @dev Two continuations hold this many bytes of a minting blob.
    uint256 private constant MAX_CONTENT_BYTES = 61;

    /// @notice keccak256(0x0a ‖ vaultCount(4) ‖ manifestHash(32) ‖ versionedHash(32)…).
    function content(
        uint256 vaultCount,
        bytes32 manifestHash,
        bytes32[] memory versionedHashes
    ) internal pure returns (bytes32) {
        return
            keccak256(
                abi.encodePacked(uint8(10), uint32(vaultCount), manifestHash, versionedHashes)
            );
    }

    /// @notice The versioned hashes of this transaction's blobs.
    function committed() internal view returns (bytes32[] memory versionedHashes) {
        // The precompile fails with one gas. Without a precompile, the call does nothing and
        // succeeds.
        bool missing;
        assembly ("memory-safe") {
            missing := staticcall(1, POINT_EVALUATION, 0, 0, 0, 0)
        }
        if (missing) revert NoPointEvaluation();
        uint256 blobs;
        while (blobhash(blobs) != 0) ++blobs;
        if (blobs == 0 || blobs > MAX_BLOBS) revert BlobCountInvalid(blobs);
        versionedHashes = new bytes32[](blobs);
        for (uint256 i; i < blobs; ++i) versionedHashes[i] = blobhash(i);
    }

    /// @notice Whether the path opens the vault's elements in the batch's blobs, at the slot that
    /// the vault id names.
    /// @param assetIndex The place of the vault's asset in the batch's manifest.
    /// @param path Manifest hash, versioned hashes, then commitment(48) ‖ proof(48) for each
    /// element. If there are continuations, the last word is the place of the first one.
    function opened(
        Vault memory vault,
        uint256 assetIndex,
        Batch memory batch,
        bytes32[] calldata path
    ) internal view returns (bool) {
        unchecked {
            uint256 continuation = path.length == 0 ? 0 : uint256(path[path.length - 1]);
            uint256[] memory elements = elementsOf(vault, assetIndex, continuation);
            if (elements.length == 1) return openedHead(vault.vaultId, elements[0], batch, path);
            // The number of words behind the versioned hashes.
            uint256 rest = elements.length * OPENING_WORDS + 1;
            if (elements.length == 0 || path.length < 2 + rest) return false;
            uint256 blobs = path.length - 1 - rest;
            if (
                continuation < batch.vaultCount ||
                !_opensAt(path, blobs, vault.vaultId, elements[0], batch)
            ) return false;
            for (uint256 i = 1; i < elements.length; ++i) {
                if (!_evaluates(path, blobs, i, continuation + i - 1, elements[i])) return false;
            }
            return true;
        }
    }

    /// @notice {opened} for a vault of one element.
    function openedHead(
        uint256 vaultId,
        uint256 head,
        Batch memory batch,
        bytes32[] calldata path
    ) internal view returns (bool) {
        unchecked {
            return
                path.length > 1 + OPENING_WORDS &&
                _opensAt(path, path.length - 1 - OPENING_WORDS, vaultId, head, batch);
        }
    }

    function batchRoot(bytes32 manifestRoot, bytes32 content_) internal pure returns (bytes32) {
        return Manifest.batchRoot(KIND, manifestRoot, content_);
    }

    /// @notice The elements of a vault: its head, then its continuations. Empty when no form holds
    /// the vault.
    /// @param continuation The place of the first continuation. A vault of one element ignores it.
    function elementsOf(
        Vault memory vault,
        uint256 assetIndex,
        uint256 continuation
    ) internal pure returns (uint256[] memory elements) {
        unchecked {
            uint256 head = headOf(vault, assetIndex);
            if (head != 0) return _single(head);
            uint256 amount = vault.amount;
            bytes memory blob = vault.blob;
            if (amount == 0 || amount > uint64(type(int64).max)) return elements;
            head = (assetIndex << 240) | (uint256(uint160(vault.owner)) << 80);
            (uint256 spelling, uint256 id) = _numberIn(blob);
            if (spelling < 3 && amount == 1) {
                if (id < 1 << 80) return _single(((2 + spelling) << 248) | head | id);
                elements = new uint256[](2);
                elements[0] = ((6 + spelling) << 248) | head | _place(continuation) | (id >> 248);
                elements[1] = (10 << 248) | (id & ((1 << 248) - 1));
                return elements;
            }
            if (blob.length > MAX_CONTENT_BYTES) return elements;
            elements = new uint256[](blob.length > 30 ? 3 : 2);
            elements[0] = (9 << 248) | head | _place(continuation) | amount;
            elements[1] = (10 << 248) | (blob.length << 240) | (_bytesAt(blob, 0) >> 16);
            if (blob.length > 30) elements[2] = (10 << 248) | (_bytesAt(blob, 30) >> 8);
        }
    }

    /// @notice The only element of a vault whose minting blob is empty or a short decimal; 0 for
    /// any other vault.
    function headOf(Vault memory vault, uint256 assetIndex) internal pure returns (uint256) {
        unchecked {
            (uint256 amount, bytes memory blob) = (vault.amount, vault.blob);
            uint256 head = (assetIndex << 240) | (uint256(uint160(vault.owner)) << 80);
            if (amount == 0 || amount > uint64(type(int64).max)) return 0;
            if (blob.length == 0) return (1 << 248) | head | amount;
            (bool valid, uint256 id) = MintingBlob.decimal(blob, 0, blob.length);
            if (!valid) return 0;
            if (amount == 1) return id < 1 << 80 ? (2 << 248) | head | id : 0;
            return id < 1 << 40 && amount < 1 << 40 ? (5 << 248) | head | (amount << 40) | id : 0;
        }
    }

    /// @notice The point at which the polynomial's value is the element of this place. It is the
    /// root of unity to the power of the place's twelve bits in reverse order.
    function pointOf(uint256 place) internal pure returns (uint256 point) {
        assembly ("memory-safe") {
            point := 1
            // Begins with the highest bit of the power, which is the lowest bit of the place.
            for {
                let bits := or(place, BLOB_ELEMENTS)
            } gt(bits, 1) {
                bits := shr(1, bits)
            } {
                point := mulmod(point, point, MODULUS)
                if and(bits, 1) {
                    point := mulmod(point, ROOT_OF_UNITY, MODULUS)
                }
            }
        }
    }

    /// @dev Whether the path begins with the batch's content, and opens the head.
    function _opensAt(
        bytes32[] calldata path,
        uint256 blobs,
        uint256 vaultId,
        uint256 head,
        Batch memory batch
    ) private view returns (bool) {
        uint256 slot = vaultId & SLOT_MASK;
        if (vaultId >> 63 == 0 || slot >= batch.vaultCount) return false;
        bytes32 hash;
        uint256 vaultCount = batch.vaultCount;
        assembly ("memory-safe") {
            let preimage := mload(0x40)
            let size := shl(5, add(blobs, 1))
            mstore(preimage, or(shl(248, 10), shl(216, vaultCount)))
            calldatacopy(add(preimage, 5), path.offset, size)
            hash := keccak256(preimage, add(size, 5))
        }
        return
            batchRoot(batch.manifestRoot, hash) == batch.batchRoot &&
            _evaluates(path, blobs, 0, slot, head);
    }

    /// @dev Whether opening `index` of the path shows this value at a place of the blobs. The
    /// precompile answers with 64 bytes: the number of elements in a blob, and the modulus. A chain
    /// without it answers with no bytes. A wrong opening burns the gas that it gets. So the call
    /// passes on twice the price, and more only if the caller has plenty, since an upgrade may
    /// change the price.
    function _evaluates(
        bytes32[] calldata path,
        uint256 blobs,
        uint256 index,
        uint256 place,
        uint256 value
    ) private view returns (bool yes) {
        if (place >= blobs * BLOB_ELEMENTS) return false;
        uint256 point = pointOf(place % BLOB_ELEMENTS);
        assembly ("memory-safe") {
            let input := mload(0x40)
            mstore(input, calldataload(add(path.offset, shl(5, add(1, div(place, BLOB_ELEMENTS))))))
            mstore(add(input, 0x20), point)
            mstore(add(input, 0x40), value)
            calldatacopy(
                add(input, 0x60),
                add(path.offset, shl(5, add(add(1, blobs), mul(index, OPENING_WORDS)))),
                0x60
            )
            let gas_ := shr(4, gas())
            if lt(gas_, EVALUATION_GAS) {
                gas_ := EVALUATION_GAS
            }
            yes := staticcall(gas_, POINT_EVALUATION, input, 0xc0, input, 0x40)
            yes := and(yes, eq(returndatasize(), 0x40))
            yes := and(
                yes,
                and(eq(mload(input), BLOB_ELEMENTS), eq(mload(add(input, 0x20)), MODULUS))
            )
        }
    }

    /// @dev The spelling of a minting blob: 0 decimal, 1 `{id}:{}`, 2 raw bytes, 3 no number. 32
    /// digits are a decimal.
    function _numberIn(bytes memory blob) private pure returns (uint256 spelling, uint256 id) {
        unchecked {
            uint256 length = blob.length;
            bool valid;
            (valid, id) = MintingBlob.decimal(blob, 0, length);
            if (valid) return (0, id);
            if (
                length > 5 &&
                blob[0] == "{" &&
                bytes4(bytes32(_bytesAt(blob, length - 4))) == "}:{}"
            ) {
                (valid, id) = MintingBlob.decimal(blob, 1, length - 4);
                if (valid) return (1, id);
            }
            return length == 32 ? (2, _bytesAt(blob, 0)) : (3, 0);
        }
    }

    /// @dev A word of the blob's bytes from there on, padded with zeros.
    function _bytesAt(bytes memory blob, uint256 from) private pure returns (uint256 word) {
        unchecked {
            uint256 left = blob.length - from;
            assembly ("memory-safe") {
                word := mload(add(add(blob, 0x20), from))
            }
            if (left < 32) word = (word >> (8 * (32 - left))) << (8 * (32 - left));
        }
    }

    /// @dev The place of the first continuation, at its position in the head.
    function _place(uint256 continuation) private pure returns (uint256) {
        return (continuation & 0xffff) << 64;
    }

    function _single(uint256 head) private pure returns (uint256[] memory elements) {
        elements = new uint256[](1);
        elements[0] = head;
    }
}
