// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {BatchHeader, Mode, SLOT_MASK, Vault} from "../interfaces/Model.sol";
import {Manifest} from "./Manifest.sol";

/// @dev The proof that leads from a batch root to the state commitment.
library StateProof {
    uint256 internal constant STATE_HEIGHT = 32;
    /// @dev The last leaf of a state tree stays empty; see {verifyConsistency}'s counts.
    uint256 private constant MAX_STATE_LEAVES = type(uint32).max;

    /// @notice keccak256(0x01 ‖ left ‖ right).
    function node(bytes32 left, bytes32 right) internal pure returns (bytes32 hash) {
        assembly ("memory-safe") {
            let free := mload(0x40)
            mstore8(free, 1)
            mstore(add(free, 1), left)
            mstore(add(free, 33), right)
            hash := keccak256(free, 65)
        }
    }

    /// @notice The vault in memory. Each look at the calldata would check it again.
    function load(Vault calldata vault) internal pure returns (Vault memory held) {
        bytes calldata mintingBlob = vault.mintingBlob;
        assembly ("memory-safe") {
            calldatacopy(held, vault, 0xa0)
            // Vault id, chain, amount and the minting blob's offset have 64 bits, the owner 160.
            let wide := or(
                or(mload(held), mload(add(held, 0x20))),
                or(mload(add(held, 0x80)), calldataload(add(vault, 0xa0)))
            )
            if or(shr(64, wide), shr(160, mload(add(held, 0x40)))) {
                revert(0, 0)
            }
            let text := mload(0x40)
            mstore(add(held, 0xa0), text)
            mstore(text, mintingBlob.length)
            calldatacopy(add(text, 0x20), mintingBlob.offset, mintingBlob.length)
            mstore(0x40, and(add(add(text, 0x3f), mintingBlob.length), not(0x1f)))
        }
    }

    /// @notice keccak256(0x02 ‖ batchNumber(8) ‖ vaultCount(4) ‖ dataHash(32) ‖ batchRoot(32)).
    function stateLeaf(
        uint64 batchNumber,
        uint32 vaultCount,
        bytes32 dataHash,
        bytes32 batchRoot
    ) internal pure returns (bytes32 hash) {
        assembly ("memory-safe") {
            let free := mload(0x40)
            mstore(free, or(shl(248, 2), or(shl(184, batchNumber), shl(152, vaultCount))))
            mstore(add(free, 13), dataHash)
            mstore(add(free, 45), batchRoot)
            hash := keccak256(free, 77)
        }
    }

    /// @notice keccak256(0x09 ‖ history(32) ‖ mode(1) ‖ stateLeaf(32)). It covers all commits of
    /// both modes, in their order.
    function nextHistory(
        bytes32 history,
        Mode mode,
        bytes32 leaf
    ) internal pure returns (bytes32 next) {
        assembly ("memory-safe") {
            let free := mload(0x40)
            mstore8(free, 9)
            mstore(add(free, 1), history)
            mstore8(add(free, 33), mode)
            mstore(add(free, 34), leaf)
            next := keccak256(free, 66)
        }
    }

    function headerHash(BatchHeader calldata header) internal pure returns (bytes32 hash) {
        (hash, , , ) = readHeader(header);
    }

    /// @notice The hash of a header, and its numbers. Each look at the calldata would check them
    /// again.
    function readHeader(
        BatchHeader calldata header
    ) internal pure returns (bytes32 hash, uint32 vaultCount, uint64 committedAt, uint64 sequence) {
        assembly ("memory-safe") {
            vaultCount := calldataload(add(header, 0x20))
            committedAt := calldataload(add(header, 0x40))
            sequence := calldataload(add(header, 0x60))
            if or(shr(32, vaultCount), shr(64, or(committedAt, sequence))) {
                revert(0, 0)
            }
        }
        hash = headerHash(header.batchRoot, vaultCount, committedAt, sequence);
    }

    /// @notice keccak256(0x04 ‖ batchRoot(32) ‖ vaultCount(4) ‖ committedAt(8) ‖ sequence(8)).
    function headerHash(
        bytes32 batchRoot,
        uint32 vaultCount,
        uint64 committedAt,
        uint64 sequence
    ) internal pure returns (bytes32 hash) {
        assembly ("memory-safe") {
            let free := mload(0x40)
            mstore8(free, 4)
            mstore(add(free, 1), batchRoot)
            mstore(
                add(free, 33),
                shl(96, or(or(shl(128, vaultCount), shl(64, committedAt)), sequence))
            )
            hash := keccak256(free, 53)
        }
    }

    function stateCommitment(
        uint64 chainId,
        address source,
        bytes32 rootValidium,
        bytes32 rootRollup,
        uint64 countValidium,
        uint64 countRollup
    ) internal pure returns (bytes32) {
        return
            keccak256(
                abi.encodePacked(
                    uint8(3),
                    uint8(1),
                    chainId,
                    source,
                    rootValidium,
                    rootRollup,
                    countValidium,
                    countRollup
                )
            );
    }

    /// @notice Root of an empty tree of this height.
    function emptyRoot(uint256 levels) internal pure returns (bytes32 root) {
        for (uint256 i; i < levels; ++i) root = node(root, root);
    }

    /// @notice Whether a batch of `count` slots, at least one, has this height: ceil(log2 count).
    function isHeight(uint256 levels, uint256 count) internal pure returns (bool) {
        unchecked {
            uint256 last = count - 1;
            return last >> levels == 0 && (levels == 0 || last >> (levels - 1) == 1);
        }
    }

    /// @notice The root above a leaf at a position. Siblings go from the leaf upwards.
    function fold(
        bytes32 leaf,
        uint256 position,
        bytes32[] calldata siblings
    ) internal pure returns (bytes32 hash) {
        assembly ("memory-safe") {
            // 0x01 ‖ left ‖ right in free memory. Left lies at a multiple of 64, so that bit 5 of
            // an address tells the two apart.
            let left := and(add(mload(0x40), 95), not(63))
            let pair := sub(left, 1)
            mstore8(pair, 1)
            hash := leaf
            // Bit 5 is the side of the present level.
            let turn := shl(5, position)
            let sibling := siblings.offset
            let end := add(sibling, shl(5, siblings.length))
            // A turn of the loop takes two levels, which is cheaper.
            if and(siblings.length, 1) {
                let own := or(left, and(turn, 32))
                mstore(own, hash)
                mstore(xor(own, 32), calldataload(sibling))
                hash := keccak256(pair, 65)
                sibling := add(sibling, 32)
                turn := shr(1, turn)
            }
            for {} lt(sibling, end) {} {
                let own := or(left, and(turn, 32))
                mstore(own, hash)
                mstore(xor(own, 32), calldataload(sibling))
                hash := keccak256(pair, 65)
                own := or(left, and(shr(1, turn), 32))
                mstore(own, hash)
                mstore(xor(own, 32), calldataload(add(sibling, 32)))
                hash := keccak256(pair, 65)
                sibling := add(sibling, 64)
                turn := shr(2, turn)
            }
        }
    }

    /// @notice The root of a tree that is empty from `position` on: like {fold} from an empty leaf,
    /// with the zero subtree in place of every right sibling.
    function foldEmpty(
        uint256 position,
        bytes32[] calldata siblings
    ) internal pure returns (bytes32 hash) {
        bytes32 zero;
        for (uint256 i; i < siblings.length; ++i) {
            hash = (position >> i) & 1 == 0 ? node(hash, zero) : node(siblings[i], hash);
            zero = node(zero, zero);
        }
    }

    /// @notice Whether the leaf is in a batch of this root and count, at the slot of its vault's
    /// id. The caller checks the batch number.
    /// @param manifestRoot The root that {manifestRootOf} gives for the vault's asset.
    function verifyLeafUnder(
        uint64 vaultId,
        bytes32 leaf,
        bytes32 manifestRoot,
        bytes32 batchRoot,
        uint32 vaultCount,
        bytes32[] calldata siblings
    ) internal pure returns (bool) {
        uint256 slot = vaultId & SLOT_MASK;
        return
            slot < vaultCount &&
            isHeight(siblings.length, vaultCount) &&
            Manifest.batchRoot(vaultId >> 63, manifestRoot, fold(leaf, slot, siblings)) ==
                batchRoot;
    }

    /// @notice The manifest root above an asset, and whether a manifest can have such a path.
    function manifestRootOf(
        uint64 chainId,
        uint256 assetType,
        uint256 index,
        bytes32[] calldata siblings
    ) internal pure returns (bool shown, bytes32 root) {
        shown = siblings.length <= Manifest.MAX_HEIGHT && index >> siblings.length == 0;
        root = fold(Manifest.leaf(chainId, assetType), index, siblings);
    }

    /// @notice Whether a state tree begins with all leaves of an earlier one. Between equal counts
    /// the proof is empty, the leaf zero.
    /// @dev The left siblings in `atOld` are completed subtrees. With empty right siblings they
    /// make the old root, and with the given ones the new root. So both trees agree left of the old
    /// count. `atNew` shows that the new tree ends at its count.
    /// @param leaf The newer tree's leaf at the old count.
    /// @param atOld The newer tree's siblings at the old count.
    /// @param atNew The newer tree's siblings at its own count.
    function verifyConsistency(
        bytes32 oldRoot,
        uint64 oldCount,
        bytes32 newRoot,
        uint64 newCount,
        bytes32 leaf,
        bytes32[] calldata atOld,
        bytes32[] calldata atNew
    ) internal pure returns (bool) {
        if (oldCount > newCount || newCount > MAX_STATE_LEAVES) return false;
        if (oldCount == newCount)
            return oldRoot == newRoot && leaf == 0 && atOld.length == 0 && atNew.length == 0;
        return
            atOld.length == STATE_HEIGHT &&
            atNew.length == STATE_HEIGHT &&
            foldEmpty(oldCount, atOld) == oldRoot &&
            fold(leaf, oldCount, atOld) == newRoot &&
            foldEmpty(newCount, atNew) == newRoot;
    }
}
