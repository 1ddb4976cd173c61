// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {Mode, Vault, VaultPath} from "../../contracts/interfaces/Model.sol";
import {StateProof} from "../../contracts/libraries/StateProof.sol";
import {OutsideProofs} from "../../contracts/test/OutsideProofs.sol";
import {ProofHarness} from "../../contracts/test/ProofHarness.sol";
import {Batches} from "./support/Batches.sol";
import {Manifests} from "./support/Manifests.sol";
import {NaiveTree} from "./support/NaiveTree.sol";
import {deploy, vm} from "./support/Vm.sol";

/// @dev The library against naive trees, with random leaves, positions and lies.
contract ProofsFuzz {
    ProofHarness private _library;

    function setUp() external {
        _library = ProofHarness(deploy("contracts/test/ProofHarness.sol/ProofHarness", ""));
    }

    function testFuzz_everyLeafFoldsToTheRoot(bytes32 seed, uint256 size, uint256 position) external view {
        bytes32[] memory leaves = _leaves(seed, 1 + (size % 40));
        position %= leaves.length;
        uint256 height = NaiveTree.heightOf(leaves.length);
        bytes32 root = NaiveTree.root(leaves, height);
        require(_library.fold(leaves[position], position, NaiveTree.siblings(leaves, height, position)) == root, "fold");
    }

    function testFuzz_aPathIsAsLongAsTheTreeIsHigh(uint32 count, uint256 levels) external pure {
        // Small counts as often as large ones.
        count = 1 + (count >> (levels % 32)) % type(uint32).max;
        uint256 height = OutsideProofs.height(count);
        require(2 ** height >= count && (height == 0 || 2 ** (height - 1) < count), "not ceil(log2 count)");
        require(StateProof.isHeight(height, count), "its height");
        require(StateProof.isHeight(levels % 40, count) == (levels % 40 == height), "another height");
        require(!StateProof.isHeight(levels | 64, count), "higher than any tree");
    }

    function testFuzz_manyLeavesFoldToTheRoot(bytes32 seed, uint256 size, uint256 chosen) external view {
        bytes32[] memory leaves = _leaves(seed, 1 + (size % 20));
        uint256 height = NaiveTree.heightOf(leaves.length);
        (uint256[] memory positions, bytes32[] memory picked) = _choose(leaves, chosen);
        bytes32[] memory siblings = _multiproof(leaves, positions, height);
        (bytes32 root, bool complete) = _library.foldMany(positions, picked, leaves.length, siblings);
        require(complete && root == NaiveTree.root(leaves, height), "a true multiproof was refused");
        bytes32[] memory more = new bytes32[](siblings.length + 1);
        for (uint256 i; i < siblings.length; ++i) more[i] = siblings[i];
        (, complete) = _library.foldMany(positions, picked, leaves.length, more);
        require(!complete, "a sibling too many");
    }

    function testFuzz_vaultsProveOnlyThemselves(Vault memory vault, bytes32 seed, uint256 size, uint256 field) external view {
        bytes32[] memory leaves = _leaves(seed, 1 + (size % 20));
        uint256 slot = uint256(seed) % leaves.length;
        vault.vaultId = (vault.vaultId & ~uint64(0xfffff)) | uint64(slot);
        leaves[slot] = Batches.leaf(vault);
        uint32 count = uint32(leaves.length);
        uint256 height = NaiveTree.heightOf(count);
        Vault[] memory alone = new Vault[](1);
        alone[0] = vault;
        Manifests.Asset[] memory assets = Manifests.assetsOf(alone);
        bytes32[] memory manifest = Manifests.leavesOf(assets);
        bytes32 root = Manifests.batchRoot(Mode(vault.vaultId >> 63), manifest, NaiveTree.root(leaves, height));
        VaultPath memory path = Manifests.pathOf(assets, manifest, vault, NaiveTree.siblings(leaves, height, slot));
        require(_library.verifyVault(vault, root, count, path), "a true proof was refused");
        field %= 7;
        if (field == 0) vault.vaultId ^= 1 << 20;
        if (field == 1) vault.chainId ^= 1;
        if (field == 2) vault.owner = address(uint160(vault.owner) ^ 1);
        if (field == 3) vault.assetType ^= 1 << 255;
        if (field == 4) vault.amount ^= 1 << 63;
        if (field == 5) vault.blob = abi.encodePacked(vault.blob, bytes1(0));
        if (field == 6) root ^= bytes32(uint256(1));
        require(!_library.verifyVault(vault, root, count, path), "a lie was proven");
    }

    function testFuzz_stateTreesExtend(bytes32 seed, uint256 older, uint256 newer) external view {
        newer %= 33;
        older %= newer + 1;
        bytes32[] memory leaves = _leaves(seed, newer);
        bytes32[] memory before = _leaves(seed, older);
        (bytes32 oldRoot, bytes32 newRoot) = (NaiveTree.root(before, 32), NaiveTree.root(leaves, 32));
        (bytes32 leaf, bytes32[] memory atOld, bytes32[] memory atNew) = (bytes32(0), new bytes32[](0), new bytes32[](0));
        if (older < newer) {
            (leaf, atOld, atNew) =
                (leaves[older], NaiveTree.siblings(leaves, 32, older), NaiveTree.siblings(leaves, 32, newer));
            bytes32[] memory atStart = NaiveTree.siblings(before, 32, older);
            bytes32 next = NaiveTree.root(_leaves(seed, older + 1), 32);
            require(_library.verifyBatch(oldRoot, next, uint64(older), leaf, atStart), "a true batch proof was refused");
            require(!_library.verifyBatch(next, oldRoot, uint64(older), leaf, atStart), "a batch was taken back");
        }
        uint64 count = uint64(newer);
        require(_library.verifyConsistency(oldRoot, uint64(older), newRoot, count, leaf, atOld, atNew), "a true extension was refused");
        bytes32 forked = keccak256(abi.encode(oldRoot));
        require(!_library.verifyConsistency(forked, uint64(older), newRoot, count, leaf, atOld, atNew), "a fork was taken");
        if (older > 0) {
            require(!_library.verifyConsistency(oldRoot, uint64(older - 1), newRoot, count, leaf, atOld, atNew), "a shorter count was taken");
        }
    }

    function _leaves(bytes32 seed, uint256 count) private pure returns (bytes32[] memory leaves) {
        leaves = new bytes32[](count);
        for (uint256 i; i < count; ++i) leaves[i] = keccak256(abi.encode(seed, i));
    }

    /// @dev Those whose bit is set, or else the first.
    function _choose(bytes32[] memory leaves, uint256 chosen)
        private
        pure
        returns (uint256[] memory positions, bytes32[] memory picked)
    {
        chosen &= (1 << leaves.length) - 1;
        if (chosen == 0) chosen = 1;
        uint256 count;
        for (uint256 i; i < leaves.length; ++i) count += (chosen >> i) & 1;
        (positions, picked) = (new uint256[](count), new bytes32[](count));
        uint256 next;
        for (uint256 i; i < leaves.length; ++i) {
            if ((chosen >> i) & 1 == 0) continue;
            (positions[next], picked[next]) = (i, leaves[i]);
            ++next;
        }
    }

    /// @dev Level by level, every sibling that no chosen leaf is below.
    function _multiproof(bytes32[] memory leaves, uint256[] memory positions, uint256 height)
        private
        pure
        returns (bytes32[] memory siblings)
    {
        bytes32[] memory room = new bytes32[](positions.length * height);
        uint256 count;
        for (uint256 h; h < height; ++h) {
            uint256 last = type(uint256).max;
            for (uint256 i; i < positions.length; ++i) {
                uint256 index = positions[i] >> h;
                if (index == last) continue;
                last = index;
                if (_covered(positions, h, index ^ 1)) continue;
                room[count++] = NaiveTree.siblings(leaves, height, index << h)[h];
            }
        }
        siblings = new bytes32[](count);
        for (uint256 i; i < count; ++i) siblings[i] = room[i];
    }

    function _covered(uint256[] memory positions, uint256 height, uint256 index) private pure returns (bool) {
        for (uint256 i; i < positions.length; ++i) if (positions[i] >> height == index) return true;
        return false;
    }
}
