// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {Standard, Vault} from "../../../contracts/interfaces/Model.sol";
import {Manifests} from "./Manifests.sol";

/// @dev Batch data of docs/protocol.md 4 in its plainest form: one run a vault, nothing in a dictionary but assets.
library Batches {
    /// @param standards Of each vault.
    function encode(Vault[] memory vaults, Standard[] memory standards) internal pure returns (bytes memory data) {
        Manifests.Asset[] memory assets = Manifests.assetsOf(vaults);
        data = abi.encodePacked(uint8(1), uint16(assets.length), Manifests.pack(assets), uint16(0));
        for (uint256 i; i < vaults.length; ++i) {
            uint256 asset;
            while (assets[asset].assetType != vaults[i].assetType) ++asset;
            data = abi.encodePacked(data, uint16(asset), _run(vaults[i], standards[i]));
        }
    }

    function leaf(Vault memory vault) internal pure returns (bytes32) {
        return keccak256(
            abi.encodePacked(uint8(0), vault.vaultId, vault.chainId, vault.owner, vault.assetType, vault.amount, vault.blob)
        );
    }

    /// @dev form, length, blobLength, then the one record: amounts in eight bytes, blobs as they are.
    function _run(Vault memory vault, Standard standard) private pure returns (bytes memory) {
        uint24 one = 1;
        if (standard == Standard.ERC20) return abi.encodePacked(uint8(0x80), one, vault.owner, vault.amount);
        uint8 size = uint8(vault.blob.length);
        if (standard == Standard.ERC721) return abi.encodePacked(uint8(0x04), one, size, vault.owner, vault.blob);
        return abi.encodePacked(uint8(0x84), one, size, vault.owner, vault.amount, vault.blob);
    }
}
