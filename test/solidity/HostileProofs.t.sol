// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {Mode, Vault, VaultPath} from "../../contracts/interfaces/Model.sol";
import {StateProof} from "../../contracts/libraries/StateProof.sol";
import {OutsideProofs, StatePath} from "../../contracts/test/OutsideProofs.sol";
import {Manifests} from "./support/Manifests.sol";
import {NaiveTree} from "./support/NaiveTree.sol";
import {expect} from "./support/Expect.sol";

/// @title Every proof that is true is accepted, and changing any part of it makes it refused.
contract HostileProofsFuzz is OutsideProofs {
    uint256 private constant MAX_VAULTS = 33;
    uint256 private constant MAX_BATCHES = 20;
    uint64 private constant BATCH = 5;

    function testFuzz_Vault(uint256 seed, uint8 count, uint8 slot, uint8 broken, uint256 change) external view {
        (Vault[] memory vaults, bytes32[] memory leaves) = _batch(seed, 1 + count % MAX_VAULTS);
        slot = uint8(slot % vaults.length);
        Vault memory vault = vaults[slot];
        (bytes32 root, VaultPath memory path) = _pathOf(vaults, leaves, slot);
        expect(this.verifyVault(vault, root, uint32(leaves.length), path), "a true proof is refused");
        expect(!this.verifyVault(vault, root ^ bytes32(_nonZero(change)), uint32(leaves.length), path), "another root");
        expect(!this.verifyVault(vault, root, slot, path), "a slot outside of the batch");
        bytes32[] memory siblings = path.siblings;
        path.siblings = _append(siblings);
        expect(!this.verifyVault(vault, root, uint32(leaves.length), path), "a sibling too many");
        path.siblings = siblings;
        _change(vault, broken, change);
        expect(!this.verifyVault(vault, root, uint32(leaves.length), path), "another vault");
        if (siblings.length == 0) return;
        siblings[broken % siblings.length] ^= bytes32(_nonZero(change));
        expect(!this.verifyVault(vaults[slot], root, uint32(leaves.length), path), "another sibling");
    }

    function testFuzz_AssetInTheManifest(uint256 seed, uint8 count, uint8 slot, uint8 broken, uint256 change) external view {
        (Vault[] memory vaults, bytes32[] memory leaves) = _batch(seed, 1 + count % MAX_VAULTS);
        slot = uint8(slot % vaults.length);
        Vault memory vault = vaults[slot];
        (bytes32 root, VaultPath memory path) = _pathOf(vaults, leaves, slot);
        bytes32[] memory siblings = path.assetSiblings;
        path.assetSiblings = _append(siblings);
        expect(!this.verifyVault(vault, root, uint32(leaves.length), path), "a sibling too many");
        path.assetSiblings = siblings;
        uint8 index = path.assetIndex;
        path.assetIndex ^= uint8(1 + change % 255);
        expect(!this.verifyVault(vault, root, uint32(leaves.length), path), "another index");
        path.assetIndex = index;
        Manifests.Asset[] memory assets = Manifests.assetsOf(vaults);
        bytes32[] memory manifest = Manifests.leavesOf(assets);
        manifest[index] = 0;
        bytes32 without = Manifests.batchRoot(Mode.ZkRollup, manifest, NaiveTree.root(leaves, NaiveTree.heightOf(leaves.length)));
        expect(!this.verifyVault(vault, without, uint32(leaves.length), path), "an asset that is left out");
        if (siblings.length == 0) return;
        siblings[broken % siblings.length] ^= bytes32(_nonZero(change));
        expect(!this.verifyVault(vault, root, uint32(leaves.length), path), "another sibling");
    }

    /// @dev A node's preimage is 65 bytes and begins with 1, a leaf's begins with 0: neither passes for the other.
    function testFuzz_NoNodeIsALeaf(uint256 seed, uint8 count) external view {
        (Vault[] memory vaults, bytes32[] memory leaves) = _batch(seed, 2 + count % MAX_VAULTS);
        (bytes32 root, VaultPath memory path) = _pathOf(vaults, leaves, 0);
        bytes32[] memory shorter = new bytes32[](path.siblings.length - 1);
        for (uint256 i; i < shorter.length; ++i) shorter[i] = path.siblings[i + 1];
        path.siblings = shorter;
        expect(!this.verifyVault(vaults[0], root, uint32(leaves.length), path), "a path from inside the tree");
    }

    function testFuzz_Multiproof(uint256 seed, uint8 count, uint64 chosen, uint8 broken, uint256 change) external view {
        (Vault[] memory all, bytes32[] memory leaves) = _batch(seed, 1 + count % MAX_VAULTS);
        (bytes32 root,) = _pathOf(all, leaves, 0);
        uint256[] memory positions = _choose(leaves.length, chosen);
        Vault[] memory vaults = new Vault[](positions.length);
        for (uint256 i; i < positions.length; ++i) vaults[i] = all[positions[i]];
        bytes32[] memory path = _manySiblings(leaves, positions);
        (bytes32[] memory manifest, uint8[] memory assets) = _manifestOf(all, vaults);
        expect(this.verifyVaults(vaults, root, uint32(leaves.length), path, manifest, assets), "a true proof is refused");
        expect(!this.verifyVaults(vaults, root, uint32(leaves.length), _append(path), manifest, assets), "a sibling too many");
        bytes32[] memory more = _append(manifest);
        more[manifest.length] = "another asset";
        expect(!this.verifyVaults(vaults, root, uint32(leaves.length), path, more, assets), "an asset too many");
        bytes32 leaf = manifest[assets[0]];
        manifest[assets[0]] = 0;
        expect(!this.verifyVaults(vaults, root, uint32(leaves.length), path, manifest, assets), "an asset that is left out");
        manifest[assets[0]] = leaf;
        _change(vaults[broken % vaults.length], broken, change);
        expect(!this.verifyVaults(vaults, root, uint32(leaves.length), path, manifest, assets), "another vault");
    }

    function testFuzz_MultiproofIsOrdered(uint256 seed, uint8 count, uint64 chosen, uint8 first, uint8 second) external view {
        (Vault[] memory all, bytes32[] memory leaves) = _batch(seed, 2 + count % MAX_VAULTS);
        uint256[] memory positions = _choose(leaves.length, chosen | 3);
        Vault[] memory vaults = new Vault[](positions.length);
        for (uint256 i; i < positions.length; ++i) vaults[i] = all[positions[i]];
        (first, second) = (uint8(first % vaults.length), uint8(second % vaults.length));
        bytes32[] memory path = _manySiblings(leaves, positions);
        // Swapped, or one of them twice.
        if (first == second) vaults[first] = vaults[first == 0 ? 1 : first - 1];
        else (vaults[first], vaults[second]) = (vaults[second], vaults[first]);
        (bytes32 root,) = _pathOf(all, leaves, 0);
        (bytes32[] memory manifest, uint8[] memory assets) = _manifestOf(all, vaults);
        expect(!this.verifyVaults(vaults, root, uint32(leaves.length), path, manifest, assets), "slots in another order");
    }

    function testFuzz_Extension(uint256 seed, uint8 count, uint8 broken, uint256 change) external view {
        uint64 number = uint64(count % MAX_BATCHES);
        bytes32[] memory leaves = _leaves(seed, number + 1);
        bytes32 last = leaves[number];
        bytes32[] memory path = NaiveTree.siblings(leaves, 32, number);
        bytes32 newRoot = NaiveTree.root(leaves, 32);
        bytes32 oldRoot = NaiveTree.root(_leaves(seed, number), 32);
        expect(this.verifyBatch(oldRoot, newRoot, number, last, path), "a true proof is refused");
        bytes32 off = bytes32(_nonZero(change));
        expect(!this.verifyBatch(oldRoot ^ off, newRoot, number, last, path), "another old root");
        expect(!this.verifyBatch(oldRoot, newRoot ^ off, number, last, path), "another new root");
        expect(!this.verifyBatch(oldRoot, newRoot, number, last ^ off, path), "another leaf");
        expect(!this.verifyBatch(oldRoot, newRoot, number + 1, last, path), "another place");
        path[broken % 32] ^= off;
        expect(!this.verifyBatch(oldRoot, newRoot, number, last, path), "another sibling");
    }

    function testFuzz_Consistency(uint256 seed, uint8 older, uint8 newer, uint8 broken, uint256 change) external view {
        uint64 n = uint64(1 + newer % MAX_BATCHES);
        uint64 m = uint64(older % n);
        bytes32[] memory leaves = _leaves(seed, n);
        bytes32 newRoot = NaiveTree.root(leaves, 32);
        bytes32 oldRoot = NaiveTree.root(_leaves(seed, m), 32);
        bytes32[] memory atOld = NaiveTree.siblings(leaves, 32, m);
        bytes32[] memory atNew = NaiveTree.siblings(leaves, 32, n);
        expect(this.verifyConsistency(oldRoot, m, newRoot, n, leaves[m], atOld, atNew), "a true proof is refused");
        bytes32 off = bytes32(_nonZero(change));
        expect(!this.verifyConsistency(oldRoot ^ off, m, newRoot, n, leaves[m], atOld, atNew), "another past");
        expect(!this.verifyConsistency(oldRoot, m, newRoot ^ off, n, leaves[m], atOld, atNew), "another present");
        // Roots bound their counts from above only: nothing lies at a count or past it. The commitment hashes the counts themselves.
        if (m + 1 < n) expect(!this.verifyConsistency(oldRoot, m, newRoot, n - 1, leaves[m], atOld, atNew), "a count too low");
        atOld[broken % 32] ^= off;
        expect(!this.verifyConsistency(oldRoot, m, newRoot, n, leaves[m], atOld, atNew), "another sibling");
    }

    /// @dev Nothing was committed in between.
    function testFuzz_ConsistencyWithItself(uint256 seed, uint8 count, uint256 change) external view {
        uint64 n = uint64(count % MAX_BATCHES);
        bytes32 root = NaiveTree.root(_leaves(seed, n), 32);
        bytes32[] memory none = new bytes32[](0);
        expect(this.verifyConsistency(root, n, root, n, 0, none, none), "a true proof is refused");
        expect(!this.verifyConsistency(root ^ bytes32(_nonZero(change)), n, root, n, 0, none, none), "another past");
        if (n > 0) expect(!this.verifyConsistency(root, n - 1, root, n, 0, none, none), "a count too low");
    }

    function testFuzz_APathIsAsLongAsTheTreeIsHigh(uint32 count, uint256 levels) external pure {
        // Small counts as often as large ones.
        count = 1 + (count >> (levels % 32)) % type(uint32).max;
        uint256 height = _height(count);
        expect(2 ** height >= count && (height == 0 || 2 ** (height - 1) < count), "not ceil(log2 count)");
        expect(StateProof.isHeight(height, count), "its height");
        expect(StateProof.isHeight(levels % 40, count) == (levels % 40 == height), "another height");
        expect(!StateProof.isHeight(levels | 64, count), "higher than any tree");
    }

    function testFuzz_WholePath(uint256 seed, uint8 slot, uint8 broken, uint256 change) external view {
        (Vault[] memory vaults, bytes32[] memory leaves) = _batch(seed, 9);
        slot = uint8(slot % vaults.length);
        bytes32[] memory batches = _leaves(seed, BATCH + 3);
        StatePath memory path;
        path.dataHash = keccak256(abi.encode(seed));
        (bytes32 batchRoot, VaultPath memory vaultPath) = _pathOf(vaults, leaves, slot);
        batches[BATCH] = StateProof.stateLeaf(BATCH, 9, path.dataHash, batchRoot);
        path.siblings = NaiveTree.siblings(batches, 32, BATCH);
        path.otherRoot = keccak256("the other mode");
        (path.countValidium, path.countRollup) = (2, BATCH + 3);
        bytes32 root = NaiveTree.root(batches, 32);
        bytes32 commitment = StateProof.stateCommitment(1, address(this), path.otherRoot, root, 2, BATCH + 3);
        Vault memory vault = vaults[slot];
        expect(this.verifyInState(vault, 9, vaultPath, path, 1, commitment), "a true proof is refused");
        expect(!this.verifyInState(vault, 9, vaultPath, path, 2, commitment), "another chain");
        expect(!this.verifyInState(vault, 10, vaultPath, path, 1, commitment), "another count");
        uint256 kind = broken % 4;
        if (kind == 0) path.dataHash ^= bytes32(_nonZero(change));
        if (kind == 1) path.otherRoot ^= bytes32(_nonZero(change));
        if (kind == 2) path.countRollup ^= uint64(1 + change % 7);
        if (kind == 3) path.siblings[change % 32] ^= bytes32(_nonZero(change));
        expect(!this.verifyInState(vault, 9, vaultPath, path, 1, commitment), "another path");
    }

    function verifyConsistency(
        bytes32 oldRoot,
        uint64 oldCount,
        bytes32 newRoot,
        uint64 newCount,
        bytes32 leaf,
        bytes32[] calldata atOld,
        bytes32[] calldata atNew
    ) external pure returns (bool) {
        return StateProof.verifyConsistency(oldRoot, oldCount, newRoot, newCount, leaf, atOld, atNew);
    }

    function verifyInState(
        Vault calldata vault,
        uint32 count,
        VaultPath calldata vaultPath,
        StatePath calldata path,
        uint64 chain,
        bytes32 commitment
    ) external view returns (bool) {
        return this.verifyVaultInState(vault, count, vaultPath, path, chain, address(this), commitment);
    }

    function leafOf(Vault calldata vault) external pure returns (bytes32) {
        return StateProof.vaultLeaf(vault);
    }

    /// @dev Rollup batch {BATCH}, of arbitrary vaults.
    function _batch(uint256 seed, uint256 count) private view returns (Vault[] memory vaults, bytes32[] memory leaves) {
        vaults = new Vault[](count);
        leaves = new bytes32[](count);
        for (uint256 slot; slot < count; ++slot) {
            uint256 random = uint256(keccak256(abi.encode(seed, slot)));
            bytes memory blob = new bytes(random % 40);
            for (uint256 i; i < blob.length; ++i) blob[i] = bytes1(uint8(random >> (i % 32)));
            uint64 vaultId = uint64((1 << 63) | (uint256(BATCH) << 20) | slot);
            vaults[slot] = Vault(vaultId, uint64(random), address(uint160(random >> 64)), random, uint64(random >> 8), blob);
            leaves[slot] = this.leafOf(vaults[slot]);
        }
    }

    /// @dev The batch's root, and one vault's way to it.
    function _pathOf(Vault[] memory vaults, bytes32[] memory leaves, uint256 slot)
        private
        pure
        returns (bytes32 root, VaultPath memory path)
    {
        Manifests.Asset[] memory assets = Manifests.assetsOf(vaults);
        bytes32[] memory manifest = Manifests.leavesOf(assets);
        uint256 height = NaiveTree.heightOf(leaves.length);
        root = Manifests.batchRoot(Mode.ZkRollup, manifest, NaiveTree.root(leaves, height));
        path = Manifests.pathOf(assets, manifest, vaults[slot], NaiveTree.siblings(leaves, height, slot));
    }

    /// @dev The manifest of all, and where in it the assets of some are.
    function _manifestOf(Vault[] memory all, Vault[] memory some) private pure returns (bytes32[] memory manifest, uint8[] memory places) {
        Manifests.Asset[] memory assets = Manifests.assetsOf(all);
        manifest = Manifests.leavesOf(assets);
        places = new uint8[](some.length);
        for (uint256 i; i < some.length; ++i) {
            places[i] = Manifests.pathOf(assets, manifest, some[i], new bytes32[](0)).assetIndex;
        }
    }

    function _leaves(uint256 seed, uint256 count) private pure returns (bytes32[] memory leaves) {
        leaves = new bytes32[](count);
        for (uint256 i; i < count; ++i) leaves[i] = keccak256(abi.encode(seed, i));
    }

    /// @dev What a multiproof needs: level by level, left to right, every sibling that no given position gives.
    function _manySiblings(bytes32[] memory leaves, uint256[] memory positions) private pure returns (bytes32[] memory path) {
        uint256 levels = NaiveTree.heightOf(leaves.length);
        path = new bytes32[](positions.length * levels);
        uint256 used;
        for (uint256 h; h < levels; ++h) {
            for (uint256 i; i < positions.length; ++i) {
                uint256 place = positions[i] >> h;
                bool given = i > 0 && positions[i - 1] >> h == place;
                for (uint256 j; j < positions.length; ++j) given = given || positions[j] >> h == place ^ 1;
                if (!given) path[used++] = NaiveTree.siblings(leaves, levels, positions[i])[h];
            }
        }
        assembly ("memory-safe") {
            mstore(path, used)
        }
    }

    /// @dev The slots whose bits are set, or slot 0.
    function _choose(uint256 count, uint64 chosen) private pure returns (uint256[] memory positions) {
        positions = new uint256[](count);
        uint256 used;
        for (uint256 slot; slot < count; ++slot) if ((chosen >> slot) & 1 == 1) positions[used++] = slot;
        if (used == 0) used = 1;
        assembly ("memory-safe") {
            mstore(positions, used)
        }
    }

    /// @dev One field of the vault becomes another value.
    function _change(Vault memory vault, uint8 field, uint256 change) private pure {
        uint256 kind = field % 6;
        uint64 off = uint64(1 + change % type(uint64).max);
        if (kind == 0) vault.vaultId ^= off;
        if (kind == 1) vault.chainId ^= off;
        if (kind == 2) vault.owner = address(uint160(vault.owner) ^ off);
        if (kind == 3) vault.assetType ^= _nonZero(change);
        if (kind == 4) vault.amount ^= off;
        if (kind == 5) vault.blob = abi.encodePacked(vault.blob, uint8(change));
    }

    function _append(bytes32[] memory path) private pure returns (bytes32[] memory longer) {
        longer = new bytes32[](path.length + 1);
        for (uint256 i; i < path.length; ++i) longer[i] = path[i];
    }

    function _nonZero(uint256 change) private pure returns (uint256) {
        return change == 0 ? 1 : change;
    }
}
