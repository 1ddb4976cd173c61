// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {Math} from "@openzeppelin/contracts/utils/math/Math.sol";
import {MAX_BATCH_VAULTS, SLOT_MASK, Vault, VaultPath} from "../interfaces/Model.sol";
import {LeafTree} from "../libraries/LeafTree.sol";
import {Manifest} from "../libraries/Manifest.sol";
import {StateProof} from "../libraries/StateProof.sol";
import {VaultWords} from "../libraries/VaultWords.sol";

struct StatePath {
    bytes32 dataHash;
    /// @dev 32 siblings of the batch in its mode's state tree.
    bytes32[] siblings;
    /// @dev Root of the other mode's state tree.
    bytes32 otherRoot;
    uint64 countValidium;
    uint64 countRollup;
}

/// @title Proofs of docs/protocol.md 7 that no deployed contract reads, so that outside verifiers
/// agree with the core.
abstract contract OutsideProofs {
    /// @notice {_foldMany} in a batch of `count` slots.
    function foldMany(
        uint256[] calldata positions,
        bytes32[] calldata leaves,
        uint256 count,
        bytes32[] calldata siblings
    ) external pure returns (bytes32 root, bool complete) {
        return _foldMany(positions, leaves, _height(count), siblings);
    }

    /// @notice Whether the vault is in a batch of this root and count, at the slot of its id, and
    /// the batch's manifest names its asset. The caller checks the batch number.
    function verifyVault(
        Vault calldata vault,
        bytes32 batchRoot,
        uint32 vaultCount,
        VaultPath calldata path
    ) external pure returns (bool) {
        (bool shown, bytes32 manifestRoot) = StateProof.manifestRootOf(
            vault.chainId,
            vault.assetType,
            path.assetIndex,
            path.assetSiblings
        );
        return
            shown &&
            StateProof.verifyLeafUnder(
                vault.vaultId,
                _leafOf(vault, path.assetIndex),
                manifestRoot,
                batchRoot,
                vaultCount,
                path.siblings
            );
    }

    /// @notice Whether the vault is in the state of a settlement contract's commitment.
    /// @param vaultPath The proof from the vault to the batch root.
    /// @param path The proof from the batch root to the commitment.
    function verifyVaultInState(
        Vault calldata vault,
        uint32 vaultCount,
        VaultPath calldata vaultPath,
        StatePath calldata path,
        uint64 sourceChain,
        address source,
        bytes32 commitment
    ) external pure returns (bool) {
        // Unused bits of the id make this number larger than any count.
        uint64 batchNumber = (vault.vaultId << 1) >> 21;
        bool isRollup = vault.vaultId >> 63 == 1;
        if (
            batchNumber >= (isRollup ? path.countRollup : path.countValidium) ||
            path.siblings.length != StateProof.STATE_HEIGHT
        ) return false;
        uint256 slot = vault.vaultId & SLOT_MASK;
        if (
            slot >= vaultCount ||
            vaultCount > MAX_BATCH_VAULTS ||
            !StateProof.isHeight(vaultPath.siblings.length, vaultCount)
        ) return false;
        (bool shown, bytes32 manifestRoot) = StateProof.manifestRootOf(
            vault.chainId,
            vault.assetType,
            vaultPath.assetIndex,
            vaultPath.assetSiblings
        );
        if (!shown) return false;
        bytes32 content = StateProof.fold(
            _leafOf(vault, vaultPath.assetIndex),
            slot,
            vaultPath.siblings
        );
        bytes32 leaf = StateProof.stateLeaf(
            batchNumber,
            vaultCount,
            path.dataHash,
            Manifest.batchRoot(vault.vaultId >> 63, manifestRoot, content)
        );
        bytes32 root = StateProof.fold(leaf, batchNumber, path.siblings);
        (bytes32 validium, bytes32 rollup) = isRollup
            ? (path.otherRoot, root)
            : (root, path.otherRoot);
        return
            StateProof.stateCommitment(
                sourceChain,
                source,
                validium,
                rollup,
                path.countValidium,
                path.countRollup
            ) == commitment;
    }

    /// @notice Whether all vaults are in a batch of this root and count, each at the slot of its
    /// id, and the manifest names the asset of each.
    /// @param vaults Strictly ascending in their slots, at least one.
    /// @param siblings The nodes that do not follow from the vaults, level by level from the
    /// leaves, left to right in a level.
    /// @param manifest All leaves of the batch's manifest, at most 255; zero for an asset that is
    /// left out.
    /// @param assets The index of each vault's asset in the manifest.
    function verifyVaults(
        Vault[] calldata vaults,
        bytes32 batchRoot,
        uint32 vaultCount,
        bytes32[] calldata siblings,
        bytes32[] calldata manifest,
        uint8[] calldata assets
    ) external pure returns (bool) {
        if (vaults.length == 0 || vaultCount > MAX_BATCH_VAULTS) return false;
        if (assets.length != vaults.length || manifest.length > Manifest.MAX_ASSETS) return false;
        uint256[] memory positions = new uint256[](vaults.length);
        bytes32[] memory hashes = new bytes32[](vaults.length);
        uint256 following;
        for (uint256 i; i < vaults.length; ++i) {
            uint256 slot = vaults[i].vaultId & SLOT_MASK;
            if (slot < following || slot >= vaultCount) return false;
            following = slot + 1;
            if (assets[i] >= manifest.length) return false;
            if (Manifest.leaf(vaults[i].chainId, vaults[i].assetType) != manifest[assets[i]])
                return false;
            positions[i] = slot;
            hashes[i] = _leafOf(vaults[i], assets[i]);
        }
        (bytes32 content, bool complete) = _foldMany(
            positions,
            hashes,
            _height(vaultCount),
            siblings
        );
        return
            complete &&
            Manifest.batchRoot(vaults[0].vaultId >> 63, rootOfLeaves(manifest), content) ==
                batchRoot;
    }

    /// @notice Whether one more state leaf leads from one root of a state tree to the next. It does
    /// not show that L1 accepted the leaf.
    function verifyBatch(
        bytes32 oldRoot,
        bytes32 newRoot,
        uint64 batchNumber,
        bytes32 leaf,
        bytes32[] calldata siblings
    ) external pure returns (bool) {
        return
            siblings.length == StateProof.STATE_HEIGHT &&
            batchNumber < type(uint32).max &&
            StateProof.fold(0, batchNumber, siblings) == oldRoot &&
            StateProof.fold(leaf, batchNumber, siblings) == newRoot;
    }

    /// @notice The root above many leaves at strictly ascending positions.
    /// @dev The function overwrites both arrays: the parents of a level replace its nodes. A node
    /// takes its right neighbour if that is its sibling, and otherwise the next of `siblings`.
    /// @return root The tree's root, if `complete`.
    /// @return complete Whether all siblings were used, and no more were needed.
    function _foldMany(
        uint256[] memory positions,
        bytes32[] memory hashes,
        uint256 levels,
        bytes32[] calldata siblings
    ) private pure returns (bytes32 root, bool complete) {
        assembly ("memory-safe") {
            let pair := mload(0x40)
            mstore8(pair, 1)
            let left := add(pair, 1)
            let next := siblings.offset
            // Positions and hashes are arrays of one length, so one offset walks both.
            let toHash := sub(hashes, positions)
            let first := add(positions, 32)
            let end := add(first, shl(5, mload(positions)))
            for {} levels {
                levels := sub(levels, 1)
            } {
                let parent := first
                for {
                    let at := first
                } lt(at, end) {
                    at := add(at, 32)
                } {
                    let position := mload(at)
                    let side := shl(5, and(position, 1))
                    mstore(add(left, side), mload(add(at, toHash)))
                    let neighbour := add(at, 32)
                    switch and(lt(neighbour, end), eq(mload(neighbour), xor(position, 1)))
                    case 1 {
                        mstore(add(left, 32), mload(add(neighbour, toHash)))
                        at := neighbour
                    }
                    default {
                        mstore(add(left, xor(side, 32)), calldataload(next))
                        next := add(next, 32)
                    }
                    mstore(add(parent, toHash), keccak256(pair, 65))
                    mstore(parent, shr(1, position))
                    parent := add(parent, 32)
                }
                end := parent
            }
            root := mload(add(first, toHash))
            complete := eq(next, add(siblings.offset, shl(5, siblings.length)))
        }
    }

    function _leafOf(Vault memory vault, uint256 assetIndex) internal pure returns (bytes32) {
        (uint256 head, bytes memory continuations) = VaultWords.wordsOf(vault, assetIndex);
        return VaultWords.leaf(vault.vaultId, head, continuations);
    }

    /// @dev The height of a batch of `count` slots is ceil(log2 count).
    function _height(uint256 count) internal pure returns (uint256) {
        return Math.log2(count, Math.Rounding.Ceil);
    }

    /// @notice The {root} of a manifest from all of its leaves.
    function rootOfLeaves(bytes32[] calldata shown) public pure returns (bytes32) {
        if (shown.length < 2) return shown.length == 0 ? bytes32(0) : shown[0];
        uint256 leaves;
        assembly ("memory-safe") {
            // {LeafTree} works in the memory before the leaves.
            leaves := add(mload(0x40), 0x300)
            calldatacopy(leaves, shown.offset, shl(5, shown.length))
        }
        return LeafTree.fold(leaves, shown.length);
    }
}
