// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {LeafTree} from "./LeafTree.sol";

/// @title The manifest: the list of a batch's assets, which the batch root binds; docs/protocol.md
/// 2.
/// @dev Arithmetic is unchecked: every number is at most a length of calldata.
library Manifest {
    /// @notice Asset `index` is incomplete, not above the one before, or beyond the 255th.
    error ManifestInvalid(uint256 index);

    uint256 internal constant MAX_ASSETS = 255;
    /// @dev chainId(8) ‖ assetType(32).
    uint256 internal constant ASSET_BYTES = 40;
    uint256 internal constant MAX_HEIGHT = 8;
    /// @dev Bytes in front of the leaves that {LeafTree-fold} overwrites.
    uint256 private constant ROOM_BEFORE_LEAVES = 0x100;

    /// @notice keccak256(0x07 ‖ chainId(8) ‖ assetType(32)).
    function leaf(uint64 chainId, uint256 assetType) internal pure returns (bytes32 hash) {
        assembly ("memory-safe") {
            // Written from the back, so that the second word overwrites the leading zeros of the
            // first.
            mstore(0x09, assetType)
            mstore(0x00, or(shl(248, 7), or(shl(184, chainId), shr(72, assetType))))
            hash := keccak256(0x00, 41)
        }
    }

    /// @notice keccak256(0x06 ‖ kind(1) ‖ manifestRoot(32) ‖ content(32)).
    /// @param kind 0 validium, 1 calldata.
    function batchRoot(
        uint256 kind,
        bytes32 manifestRoot,
        bytes32 content
    ) internal pure returns (bytes32 hash) {
        assembly ("memory-safe") {
            let free := mload(0x40)
            mstore8(free, 6)
            mstore8(add(free, 1), kind)
            mstore(add(free, 2), manifestRoot)
            mstore(add(free, 34), content)
            hash := keccak256(free, 66)
        }
    }

    /// @notice How many assets a packed list has. Reverts unless they are whole, at most 255 and
    /// strictly ascending.
    function count(bytes calldata packed) internal pure returns (uint256 assets) {
        unchecked {
            assets = packed.length / ASSET_BYTES;
            if (packed.length % ASSET_BYTES != 0) revert ManifestInvalid(assets);
            if (assets > MAX_ASSETS) revert ManifestInvalid(MAX_ASSETS);
            (uint64 lastChain, uint256 last) = (0, 0);
            for (uint256 i; i < assets; ++i) {
                (uint64 chainId, uint256 assetType) = assetAt(packed, i);
                if (i != 0 && (chainId < lastChain || (chainId == lastChain && assetType <= last)))
                    revert ManifestInvalid(i);
                (lastChain, last) = (chainId, assetType);
            }
        }
    }

    /// @notice The asset at an index of a packed list. The index must be below {count}.
    function assetAt(
        bytes calldata packed,
        uint256 index
    ) internal pure returns (uint64 chainId, uint256 assetType) {
        assembly ("memory-safe") {
            let place := add(packed.offset, mul(index, ASSET_BYTES))
            chainId := shr(192, calldataload(place))
            assetType := calldataload(add(place, 8))
        }
    }

    /// @notice Hash of a packed list. Places in the list are bound with it.
    function hashOf(bytes calldata packed) internal pure returns (bytes32 hash) {
        assembly ("memory-safe") {
            let free := mload(0x40)
            calldatacopy(free, packed.offset, packed.length)
            hash := keccak256(free, packed.length)
        }
    }

    /// @notice The root over the assets of a packed list; zero when there is none.
    /// @param leftOut Bit i makes the leaf of asset i zero.
    function root(bytes calldata packed, uint256 leftOut) internal pure returns (bytes32) {
        unchecked {
            uint256 assets = packed.length / ASSET_BYTES;
            uint256 leaves = _workspace();
            for (uint256 i; i < assets; ++i) {
                (uint64 chainId, uint256 assetType) = assetAt(packed, i);
                bytes32 hash = (leftOut >> i) & 1 == 1 ? bytes32(0) : leaf(chainId, assetType);
                assembly ("memory-safe") {
                    mstore(add(leaves, shl(5, i)), hash)
                }
            }
            return _fold(leaves, assets);
        }
    }

    /// @dev Free memory that stays unallocated.
    function _workspace() private pure returns (uint256 leaves) {
        assembly ("memory-safe") {
            leaves := add(mload(0x40), ROOM_BEFORE_LEAVES)
        }
    }

    function _fold(uint256 leaves, uint256 assets) private pure returns (bytes32 hash) {
        if (assets > 1) return LeafTree.fold(leaves, assets);
        assembly ("memory-safe") {
            if assets {
                hash := mload(leaves)
            }
        }
    }
}
