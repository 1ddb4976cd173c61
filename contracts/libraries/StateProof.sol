// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {Math} from "@openzeppelin/contracts/utils/math/Math.sol";
import {BatchHeader, Mode, Vault, VaultPath} from "../interfaces/Model.sol";
import {Manifest} from "./Manifest.sol";

/// @dev The proof that leads from a batch root to the state commitment.
struct StatePath {
    bytes32 dataHash;
    /// @dev 32 siblings of the batch in its mode's state tree.
    bytes32[] siblings;
    /// @dev Root of the other mode's state tree.
    bytes32 otherRoot;
    uint64 countValidium;
    uint64 countRollup;
}

/// @title The protocol's hashes and its four proofs. Stateless, and the same on every EVM chain.
library StateProof {
    uint256 internal constant STATE_HEIGHT = 32;
    /// @dev The last leaf of a state tree stays empty; see {verifyConsistency}'s counts.
    uint256 private constant MAX_STATE_LEAVES = type(uint32).max;
    uint256 private constant MAX_BATCH_VAULTS = 1 << 20;
    uint64 private constant SLOT_MASK = 0xfffff;

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

    /// @notice The leaf of a vault. It binds the vault's place.
    /// @dev keccak256(0x00 ‖ vaultId(8) ‖ chainId(8) ‖ owner(20) ‖ assetType(32) ‖ amount(8) ‖ blob). Fields are
    /// written from the back, so that each one overwrites the leading zeros of the next.
    function vaultLeaf(Vault memory vault) internal pure returns (bytes32 hash) {
        (uint256 vaultId, uint256 chainId, address owner, uint256 assetType, uint256 amount) =
            (vault.vaultId, vault.chainId, vault.owner, vault.assetType, vault.amount);
        bytes memory blob = vault.blob;
        assembly ("memory-safe") {
            let free := mload(0x40)
            let length := mload(blob)
            mcopy(add(free, 77), add(blob, 32), length)
            mstore(add(free, 45), amount)
            mstore(add(free, 37), assetType)
            mstore(add(free, 5), owner)
            mstore(free, or(or(shl(184, vaultId), shl(120, chainId)), shr(40, owner)))
            hash := keccak256(free, add(77, length))
        }
    }

    /// @notice keccak256(0x02 ‖ batchNumber(8) ‖ vaultCount(4) ‖ dataHash(32) ‖ batchRoot(32)).
    function stateLeaf(uint64 batchNumber, uint32 vaultCount, bytes32 dataHash, bytes32 batchRoot) internal pure returns (bytes32 hash) {
        assembly ("memory-safe") {
            let free := mload(0x40)
            mstore(free, or(shl(248, 2), or(shl(184, batchNumber), shl(152, vaultCount))))
            mstore(add(free, 13), dataHash)
            mstore(add(free, 45), batchRoot)
            hash := keccak256(free, 77)
        }
    }

    /// @notice keccak256(0x09 ‖ history(32) ‖ mode(1) ‖ stateLeaf(32)). It covers all commits of both modes, in their
    /// order.
    function nextHistory(bytes32 history, Mode mode, bytes32 leaf) internal pure returns (bytes32 next) {
        assembly ("memory-safe") {
            let free := mload(0x40)
            mstore8(free, 9)
            mstore(add(free, 1), history)
            mstore8(add(free, 33), mode)
            mstore(add(free, 34), leaf)
            next := keccak256(free, 66)
        }
    }

    function headerHash(BatchHeader calldata header) internal pure returns (bytes32) {
        return headerHash(header.batchRoot, header.vaultCount, header.committedAt, header.sequence);
    }

    /// @notice keccak256(0x04 ‖ batchRoot(32) ‖ vaultCount(4) ‖ committedAt(8) ‖ sequence(8)).
    function headerHash(bytes32 batchRoot, uint32 vaultCount, uint64 committedAt, uint64 sequence) internal pure returns (bytes32 hash) {
        assembly ("memory-safe") {
            let free := mload(0x40)
            mstore8(free, 4)
            mstore(add(free, 1), batchRoot)
            mstore(add(free, 33), shl(96, or(or(shl(128, vaultCount), shl(64, committedAt)), sequence)))
            hash := keccak256(free, 53)
        }
    }

    function stateCommitment(
        uint64 chainId, address source, bytes32 rootValidium, bytes32 rootRollup, uint64 countValidium, uint64 countRollup
    ) internal pure returns (bytes32) {
        return keccak256(
            abi.encodePacked(uint8(3), uint8(1), chainId, source, rootValidium, rootRollup, countValidium, countRollup)
        );
    }

    /// @notice Root of an empty tree of this height.
    function emptyRoot(uint256 levels) internal pure returns (bytes32 root) {
        for (uint256 i; i < levels; ++i) root = node(root, root);
    }

    /// @notice Height of a batch of `count` slots: ceil(log2 count).
    function height(uint256 count) internal pure returns (uint256) {
        return Math.log2(count, Math.Rounding.Ceil);
    }

    /// @notice Whether `levels` is the {height} of `count` slots, at least one. This is cheaper than {height}.
    function isHeight(uint256 levels, uint256 count) internal pure returns (bool) {
        unchecked {
            uint256 last = count - 1;
            return last >> levels == 0 && (levels == 0 || last >> (levels - 1) == 1);
        }
    }

    /// @notice The root above a leaf at a position. Siblings go from the leaf upwards.
    function fold(bytes32 leaf, uint256 position, bytes32[] calldata siblings) internal pure returns (bytes32 hash) {
        assembly ("memory-safe") {
            // 0x01 ‖ left ‖ right in free memory. Left lies at a multiple of 64, so that bit 5 of an address tells the
            // two apart.
            let left := and(add(mload(0x40), 95), not(63))
            let pair := sub(left, 1)
            mstore8(pair, 1)
            hash := leaf
            // Bit 5 is the side of the present level.
            let turn := shl(5, position)
            let sibling := siblings.offset
            for { let end := add(sibling, shl(5, siblings.length)) } lt(sibling, end) { sibling := add(sibling, 32) } {
                let own := or(left, and(turn, 32))
                mstore(own, hash)
                mstore(xor(own, 32), calldataload(sibling))
                hash := keccak256(pair, 65)
                turn := shr(1, turn)
            }
        }
    }

    /// @notice The root of a tree that is empty from `position` on: like {fold} from an empty leaf, with the zero
    /// subtree in place of every right sibling.
    function foldEmpty(uint256 position, bytes32[] calldata siblings) internal pure returns (bytes32 hash) {
        bytes32 zero;
        for (uint256 i; i < siblings.length; ++i) {
            hash = (position >> i) & 1 == 0 ? node(hash, zero) : node(siblings[i], hash);
            zero = node(zero, zero);
        }
    }

    /// @notice Whether the vault is in a batch of this root and count, at the slot of its id, and the batch's manifest
    /// names its asset. The caller checks the batch number.
    function verifyVault(Vault memory vault, bytes32 batchRoot, uint32 vaultCount, VaultPath calldata path) internal pure returns (bool) {
        (bool shown, bytes32 manifestRoot) = manifestRootOf(vault.chainId, vault.assetType, path.assetIndex, path.assetSiblings);
        return shown && verifyVaultUnder(vault, manifestRoot, batchRoot, vaultCount, path.siblings);
    }

    /// @notice {verifyVault} with a manifest root that {manifestRootOf} derived from the vault's asset.
    function verifyVaultUnder(
        Vault memory vault,
        bytes32 manifestRoot,
        bytes32 batchRoot,
        uint32 vaultCount,
        bytes32[] calldata siblings
    ) internal pure returns (bool) {
        uint256 slot = vault.vaultId & SLOT_MASK;
        return slot < vaultCount && isHeight(siblings.length, vaultCount)
            && Manifest.batchRoot(vault.vaultId >> 63, manifestRoot, fold(vaultLeaf(vault), slot, siblings)) == batchRoot;
    }

    /// @notice The manifest root above an asset, and whether a manifest can have such a path.
    function manifestRootOf(uint64 chainId, uint256 assetType, uint256 index, bytes32[] calldata siblings)
        internal
        pure
        returns (bool shown, bytes32 root)
    {
        shown = siblings.length <= Manifest.MAX_HEIGHT && index >> siblings.length == 0;
        root = fold(Manifest.leaf(chainId, assetType), index, siblings);
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
    ) internal pure returns (bool) {
        // Unused bits of the id make this number larger than any count.
        uint64 batchNumber = (vault.vaultId << 1) >> 21;
        bool isRollup = vault.vaultId >> 63 == 1;
        if (batchNumber >= (isRollup ? path.countRollup : path.countValidium) || path.siblings.length != STATE_HEIGHT) return false;
        uint256 slot = vault.vaultId & SLOT_MASK;
        if (slot >= vaultCount || vaultCount > MAX_BATCH_VAULTS || !isHeight(vaultPath.siblings.length, vaultCount)) return false;
        (bool shown, bytes32 manifestRoot) =
            manifestRootOf(vault.chainId, vault.assetType, vaultPath.assetIndex, vaultPath.assetSiblings);
        if (!shown) return false;
        bytes32 content = fold(vaultLeaf(vault), slot, vaultPath.siblings);
        bytes32 leaf = stateLeaf(batchNumber, vaultCount, path.dataHash, Manifest.batchRoot(vault.vaultId >> 63, manifestRoot, content));
        bytes32 root = fold(leaf, batchNumber, path.siblings);
        (bytes32 validium, bytes32 rollup) = isRollup ? (path.otherRoot, root) : (root, path.otherRoot);
        return stateCommitment(sourceChain, source, validium, rollup, path.countValidium, path.countRollup) == commitment;
    }

    /// @notice Whether all vaults are in a batch of this root and count, each at the slot of its id, and the manifest
    /// names the asset of each.
    /// @param vaults Strictly ascending in their slots, at least one.
    /// @param siblings The nodes that do not follow from the vaults, level by level from the leaves, left to right in a
    /// level.
    /// @param manifest All leaves of the batch's manifest, at most 255; zero for an asset that is left out.
    /// @param assets The index of each vault's asset in the manifest.
    function verifyVaults(
        Vault[] calldata vaults,
        bytes32 batchRoot,
        uint32 vaultCount,
        bytes32[] calldata siblings,
        bytes32[] calldata manifest,
        uint8[] calldata assets
    ) internal pure returns (bool) {
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
            if (Manifest.leaf(vaults[i].chainId, vaults[i].assetType) != manifest[assets[i]]) return false;
            positions[i] = slot;
            hashes[i] = vaultLeaf(vaults[i]);
        }
        (bytes32 content, bool complete) = foldMany(positions, hashes, height(vaultCount), siblings);
        return complete && Manifest.batchRoot(vaults[0].vaultId >> 63, Manifest.rootOfLeaves(manifest), content) == batchRoot;
    }

    /// @notice Whether one more state leaf leads from one root of a state tree to the next. It does not show that L1
    /// accepted the leaf.
    function verifyBatch(bytes32 oldRoot, bytes32 newRoot, uint64 batchNumber, bytes32 leaf, bytes32[] calldata siblings)
        internal
        pure
        returns (bool)
    {
        return siblings.length == STATE_HEIGHT && batchNumber < MAX_STATE_LEAVES && fold(0, batchNumber, siblings) == oldRoot
            && fold(leaf, batchNumber, siblings) == newRoot;
    }

    /// @notice Whether a state tree begins with all leaves of an earlier one. Between equal counts the proof is empty,
    /// the leaf zero.
    /// @dev The left siblings in `atOld` are completed subtrees. With empty right siblings they make the old root, and
    /// with the given ones the new root. So both trees agree left of the old count. `atNew` shows that the new tree
    /// ends at its count.
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
        if (oldCount == newCount) return oldRoot == newRoot && leaf == 0 && atOld.length == 0 && atNew.length == 0;
        return atOld.length == STATE_HEIGHT && atNew.length == STATE_HEIGHT && foldEmpty(oldCount, atOld) == oldRoot
            && fold(leaf, oldCount, atOld) == newRoot && foldEmpty(newCount, atNew) == newRoot;
    }

    /// @notice The root above many leaves at strictly ascending positions.
    /// @dev The function overwrites both arrays: the parents of a level replace its nodes. A node takes its right
    /// neighbour if that is its sibling, and otherwise the next of `siblings`.
    /// @return root The tree's root, if `complete`.
    /// @return complete Whether all siblings were used, and no more were needed.
    function foldMany(uint256[] memory positions, bytes32[] memory hashes, uint256 levels, bytes32[] calldata siblings)
        internal
        pure
        returns (bytes32 root, bool complete)
    {
        assembly ("memory-safe") {
            let pair := mload(0x40)
            mstore8(pair, 1)
            let left := add(pair, 1)
            let next := siblings.offset
            // Positions and hashes are arrays of one length, so one offset walks both.
            let toHash := sub(hashes, positions)
            let first := add(positions, 32)
            let end := add(first, shl(5, mload(positions)))
            for {} levels { levels := sub(levels, 1) } {
                let parent := first
                for { let at := first } lt(at, end) { at := add(at, 32) } {
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
}
