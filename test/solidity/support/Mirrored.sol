// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {Growth, IStateMirror, MirrorBatch, MirrorStep, StateRoots} from "../../../contracts/interfaces/IStateMirror.sol";
import {BatchHeader, BlobScheme, Mode, Vault} from "../../../contracts/interfaces/Model.sol";
import {Exit} from "./Exit.sol";
import {Manifests} from "./Manifests.sol";
import {NaiveTree} from "./NaiveTree.sol";
import {deploy, vm} from "./Vm.sol";

/// @dev A mirror, the batches of its source in the source's order, and how far the mirror has followed.
abstract contract Mirrored is Exit {
    /// @dev As the contract's constructor takes it.
    struct Config {
        address admin;
        uint64 sourceChainId;
        address sourceContract;
        address[] committee;
        uint8 threshold;
        uint64 changeDelay;
        uint64 maturity;
    }

    struct SourceBatch {
        Mode mode;
        uint64 number;
        MirrorBatch content;
        /// @dev The step that it came with, once it is among the accepted ones.
        uint64 step;
        bool imported;
    }

    uint64 internal constant CHANGE_DELAY = 1 days;
    uint64 internal constant SOURCE_CHAIN = 4242;
    address internal constant SOURCE = address(0x50bce);

    IStateMirror internal mirror;
    /// @dev Of the committee in force.
    uint64 internal epoch;
    uint8 internal threshold = THRESHOLD;

    SourceBatch[] internal batches;
    mapping(Mode => bytes32[]) internal stateLeaves;
    /// @dev So many batches, the first ones, has the mirror accepted.
    uint256 internal accepted;
    MirrorStep[] internal steps;
    StateRoots internal present;

    constructor() {
        vm.warp(1_800_000_000);
        Config memory config = Config(admin, SOURCE_CHAIN, SOURCE, members, THRESHOLD, CHANGE_DELAY, MATURITY);
        mirror = IStateMirror(deploy("contracts/StateMirror.sol/StateMirror", abi.encode(config)));
        issueTokens(mirror);
        // The same tokens as the source's own, where others may live at these addresses.
        address[3] memory tokens = [address(coin), address(card), address(item)];
        for (uint256 i; i < 3; ++i) mirror.registerAsset(standards[i], SOURCE_CHAIN, tokens[i], i == 0 ? QUANTUM : 1, BlobScheme.Imx);
        bytes32 empty = NaiveTree.root(new bytes32[](0), 32);
        present = StateRoots(empty, empty, 0, 0);
    }

    /// @dev A batch of the source; every fourth vault is of the source's own chain.
    function commitAtSource(uint256 seed, uint256 count, bool rollup) external {
        Mode mode = rollup ? Mode.ZkRollup : Mode.Validium;
        uint64 number = uint64(stateLeaves[mode].length);
        Vault[] memory vaults = vaultsAt((uint64(mode) << 63) | (number << 20), seed, 1 + count % 5);
        for (uint256 i; i < vaults.length; ++i) if ((seed >> i) % 4 == 0) vaults[i].chainId = SOURCE_CHAIN;
        bytes32[] memory leaves = leavesOf(vaults);
        uint256 height = NaiveTree.heightOf(leaves.length);
        Manifests.Asset[] memory assets = Manifests.assetsOf(vaults);
        bytes32[] memory manifest = Manifests.leavesOf(assets);
        bytes32 root = Manifests.batchRoot(mode, manifest, NaiveTree.root(leaves, height));
        MirrorBatch memory content = MirrorBatch(uint32(leaves.length), keccak256(abi.encode("data", mode, number)), root);
        batches.push(SourceBatch(mode, number, content, 0, false));
        stateLeaves[mode].push(
            keccak256(abi.encodePacked(uint8(2), number, content.vaultCount, content.dataHash, content.batchRoot))
        );
        for (uint256 slot; slot < leaves.length; ++slot) {
            bytes32[] memory siblings = NaiveTree.siblings(leaves, height, slot);
            places.push(Place(batches.length - 1, vaults[slot], Manifests.pathOf(assets, manifest, vaults[slot], siblings)));
        }
    }

    function countOf(Mode mode) internal view returns (uint64) {
        return mode == Mode.ZkRollup ? present.countRollup : present.countValidium;
    }

    /// @dev Leaves of a mode's tree when it had `count`.
    function leavesAt(Mode mode, uint64 count) internal view returns (bytes32[] memory leaves) {
        leaves = new bytes32[](count);
        for (uint256 i; i < count; ++i) leaves[i] = stateLeaves[mode][i];
    }

    /// @dev From the present state on, some or all of what comes next of one mode.
    function nextGrowth(uint256 seed) internal view returns (Growth memory) {
        Mode mode = batches[accepted].mode;
        uint256 run = 1;
        while (accepted + run < batches.length && batches[accepted + run].mode == mode) ++run;
        return growthTo(mode, leavesAt(mode, countOf(mode) + 1 + uint64(seed % run)));
    }

    function growthTo(Mode mode, bytes32[] memory grown) internal view returns (Growth memory) {
        uint64 first = countOf(mode);
        bytes32[] memory atOld = NaiveTree.siblings(grown, 32, first);
        bytes32[] memory atNew = NaiveTree.siblings(grown, 32, grown.length);
        return Growth(mode, uint64(grown.length), NaiveTree.root(grown, 32), grown[first], atOld, atNew);
    }

    function stateAfter(Growth memory growth) internal view returns (StateRoots memory state) {
        state = present;
        if (growth.mode == Mode.ZkRollup) (state.rootRollup, state.countRollup) = (growth.root, growth.count);
        else (state.rootValidium, state.countValidium) = (growth.root, growth.count);
    }

    function commitmentOf(StateRoots memory state, uint64 chain, address source) internal pure returns (bytes32) {
        return keccak256(
            abi.encodePacked(
                uint8(3), uint8(1), chain, source, state.rootValidium, state.rootRollup, state.countValidium, state.countRollup
            )
        );
    }

    /// @dev What a member signs of a state, without the domain.
    function mirroredHash(StateRoots memory state, uint64 chain, address source, uint64 signedEpoch) internal pure returns (bytes32) {
        bytes32 typehash = keccak256(
            "MirroredState(uint64 sourceChainId,address sourceContract,uint64 countValidium,uint64 countRollup,bytes32 commitment,uint64 epoch)"
        );
        bytes32 commitment = commitmentOf(state, chain, source);
        return keccak256(abi.encode(typehash, chain, source, state.countValidium, state.countRollup, commitment, signedEpoch));
    }

    /// @dev Path of a batch in the tree of a step.
    function pathIn(uint256 sequence, SourceBatch memory batch) internal view returns (bytes32[] memory) {
        return NaiveTree.siblings(leavesAt(batch.mode, steps[sequence].count), 32, batch.number);
    }

    /// @dev The header that a batch has here once it is imported.
    function headerOf(SourceBatch memory batch, uint256 index) internal view returns (BatchHeader memory) {
        uint64 acceptedAt = index < accepted ? steps[batch.step].acceptedAt : uint64(block.timestamp);
        return BatchHeader(batch.content.batchRoot, batch.content.vaultCount, acceptedAt, batch.step);
    }
}
