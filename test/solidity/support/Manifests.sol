// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {Mode, Vault, VaultPath} from "../../../contracts/interfaces/Model.sol";
import {NaiveTree} from "./NaiveTree.sol";

/// @dev Manifests of docs/protocol.md 2 as one would write them without a thought to gas.
library Manifests {
    struct Asset {
        uint64 chainId;
        uint256 assetType;
    }

    /// @dev The assets of the vaults, each once, ascending.
    function assetsOf(Vault[] memory vaults) internal pure returns (Asset[] memory assets) {
        assets = new Asset[](vaults.length);
        uint256 count;
        for (uint256 i; i < vaults.length; ++i) {
            Asset memory asset = Asset(vaults[i].chainId, vaults[i].assetType);
            if (_indexOf(assets, count, asset) < count) continue;
            uint256 place = count++;
            for (; place > 0 && _isBelow(asset, assets[place - 1]); --place) assets[place] = assets[place - 1];
            assets[place] = asset;
        }
        assembly ("memory-safe") {
            mstore(assets, count)
        }
    }

    function pack(Asset[] memory assets) internal pure returns (bytes memory packed) {
        for (uint256 i; i < assets.length; ++i) packed = abi.encodePacked(packed, assets[i].chainId, assets[i].assetType);
    }

    function leavesOf(Asset[] memory assets) internal pure returns (bytes32[] memory leaves) {
        leaves = new bytes32[](assets.length);
        for (uint256 i; i < assets.length; ++i) {
            leaves[i] = keccak256(abi.encodePacked(uint8(7), assets[i].chainId, assets[i].assetType));
        }
    }

    function root(bytes32[] memory leaves) internal pure returns (bytes32) {
        return NaiveTree.root(leaves, NaiveTree.heightOf(leaves.length));
    }

    function batchRoot(Mode mode, bytes32[] memory leaves, bytes32 content) internal pure returns (bytes32) {
        return keccak256(abi.encodePacked(uint8(6), uint8(mode), root(leaves), content));
    }

    /// @dev A vault's way to the batch root; one whose asset the manifest does not name has none for it.
    function pathOf(Asset[] memory assets, bytes32[] memory leaves, Vault memory vault, bytes32[] memory siblings)
        internal
        pure
        returns (VaultPath memory path)
    {
        path.siblings = siblings;
        uint256 index = _indexOf(assets, assets.length, Asset(vault.chainId, vault.assetType));
        if (index == assets.length) return path;
        path.assetIndex = uint8(index);
        path.assetSiblings = NaiveTree.siblings(leaves, NaiveTree.heightOf(leaves.length), index);
    }

    function _indexOf(Asset[] memory assets, uint256 count, Asset memory asset) private pure returns (uint256 index) {
        while (index < count && keccak256(abi.encode(assets[index])) != keccak256(abi.encode(asset))) ++index;
    }

    function _isBelow(Asset memory a, Asset memory b) private pure returns (bool) {
        return a.chainId < b.chainId || (a.chainId == b.chainId && a.assetType < b.assetType);
    }
}
