// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {SLOT_MASK} from "../interfaces/Model.sol";
import {Manifest} from "./Manifest.sol";
import {VaultWords} from "./VaultWords.sol";

/// @title Vaults as field elements of EIP-4844 blobs; docs/protocol.md 4.
/// @notice Lets the point evaluation precompile compare a vault's words with the blobs. A head is
/// an element as it is, and a continuation has a first byte in front of its 31.
library BlobVaults {
    /// @dev The batch by its header and an asset's path in the manifest.
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
    /// @dev First byte of each element that holds a continuation. No head has it.
    uint256 private constant CONTINUATION = 0x0a;

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

    /// @notice Whether the path opens the vault's words in the batch's blobs, at the slot that the
    /// vault id names.
    /// @param head The first word of {VaultWords-wordsOf}, which also makes the continuations.
    /// @param path Manifest hash, versioned hashes, then commitment(48) ‖ proof(48) for each word.
    /// If there are continuations, the last word is the place of the first one.
    function opened(
        uint64 vaultId,
        uint256 head,
        bytes memory continuations,
        Batch memory batch,
        bytes32[] calldata path
    ) internal view returns (bool) {
        unchecked {
            uint256 count = continuations.length / VaultWords.CONTINUATION_BYTES;
            // The number of words behind the versioned hashes.
            uint256 rest = (count + 1) * OPENING_WORDS + (count == 0 ? 0 : 1);
            if (path.length < 2 + rest) return false;
            uint256 blobs = path.length - 1 - rest;
            if (count == 0) return _opensAt(path, blobs, vaultId, head, batch);
            uint256 place = uint256(path[path.length - 1]);
            if (place < batch.vaultCount || place >= blobs * BLOB_ELEMENTS) return false;
            if (!_opensAt(path, blobs, vaultId, VaultWords.placed(head, place), batch))
                return false;
            for (uint256 i; i < count; ++i) {
                uint256 element;
                assembly ("memory-safe") {
                    let bytes_ := mload(add(add(continuations, 0x20), mul(i, 31)))
                    element := or(shl(248, CONTINUATION), shr(8, bytes_))
                }
                if (!_evaluates(path, blobs, i + 1, place + i, element)) return false;
            }
            return true;
        }
    }

    function batchRoot(bytes32 manifestRoot, bytes32 content_) internal pure returns (bytes32) {
        return Manifest.batchRoot(KIND, manifestRoot, content_);
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
}
