// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {Vault, BatchHeader} from "../interfaces/IStateCommitment.sol";

/// @title The protocol's hashing and its four proofs: stateless, the same on every EVM chain.
library StateProof {
    uint256 internal constant STATE_HEIGHT = 32;

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

    /// @notice The leaf of a vault; it binds the vault's own place.
    function vaultLeaf(Vault calldata vault) internal pure returns (bytes32) {
        return keccak256(
            abi.encodePacked(uint8(0), vault.vaultId, vault.chainId, vault.owner, vault.assetType, vault.amount, vault.blob)
        );
    }

    function stateLeaf(uint64 batchNumber, uint32 vaultCount, bytes32 dataHash, bytes32 batchRoot) internal pure returns (bytes32) {
        return keccak256(abi.encodePacked(uint8(2), batchNumber, vaultCount, dataHash, batchRoot));
    }

    function headerHash(BatchHeader memory header) internal pure returns (bytes32) {
        return keccak256(abi.encodePacked(uint8(4), header.batchRoot, header.vaultCount, header.committedAt, header.sequence));
    }

    function stateCommitment(
        uint64 chainId, address source, bytes32 rootValidium, bytes32 rootRollup, uint64 countValidium, uint64 countRollup
    ) internal pure returns (bytes32) {
        return keccak256(
            abi.encodePacked(uint8(3), uint8(1), chainId, source, rootValidium, rootRollup, countValidium, countRollup)
        );
    }

    /// @notice Height of a batch of `count` slots: ceil(log2 count).
    function height(uint256 count) internal pure returns (uint256 result) {
        while ((uint256(1) << result) < count) ++result;
    }

    /// @notice The root that a leaf at a position leads to, siblings from the leaf upwards.
    function fold(bytes32 leaf, uint256 position, bytes32[] calldata siblings) internal pure returns (bytes32 hash) {
        hash = leaf;
        for (uint256 i; i < siblings.length; ++i) {
            hash = (position >> i) & 1 == 0 ? node(hash, siblings[i]) : node(siblings[i], hash);
        }
    }

    /// @notice Like {fold}, with every right sibling replaced by the zero subtree of its height.
    function foldLeft(bytes32 leaf, uint256 position, bytes32[] calldata siblings) internal pure returns (bytes32 hash) {
        bytes32 zero;
        hash = leaf;
        for (uint256 i; i < siblings.length; ++i) {
            hash = (position >> i) & 1 == 0 ? node(hash, zero) : node(siblings[i], hash);
            zero = node(zero, zero);
        }
    }

    /// @notice Whether the vault is in a batch of this root and count, at the slot that its id names.
    function verifyVault(Vault calldata vault, bytes32 batchRoot, uint32 vaultCount, bytes32[] calldata siblings) internal pure returns (bool) {
        uint256 slot = vault.vaultId & 0xfffff;
        return slot < vaultCount && siblings.length == height(vaultCount) && fold(vaultLeaf(vault), slot, siblings) == batchRoot;
    }
}
