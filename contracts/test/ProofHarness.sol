// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {BatchHeader, Mode, Standard, Vault} from "../interfaces/Model.sol";
import {AssetEncoding} from "../libraries/AssetEncoding.sol";
import {BlobVaults} from "../libraries/BlobVaults.sol";
import {Manifest} from "../libraries/Manifest.sol";
import {MintingBlob} from "../libraries/MintingBlob.sol";
import {StateProof} from "../libraries/StateProof.sol";
import {VaultWords} from "../libraries/VaultWords.sol";
import {OutsideProofs} from "./OutsideProofs.sol";

/// @title The libraries' functions, to be called from outside.
contract ProofHarness is OutsideProofs {
    function assetType(
        Standard standard,
        address token,
        uint256 quantum
    ) external pure returns (uint256) {
        return AssetEncoding.assetType(standard, token, quantum);
    }

    /// @notice The asset id of a minting blob, as StarkEx derives it: 240 bits of a hash, and
    /// flags. No contract needs it.
    function mintableAssetId(
        Standard standard,
        uint256 type_,
        bytes calldata mintingBlob
    ) external pure returns (uint256 id) {
        id = uint256(
            uint240(
                uint256(keccak256(abi.encodePacked("MINTABLE:", type_, keccak256(mintingBlob))))
            )
        );
        id |= 1 << 250;
        if (standard != Standard.ERC721) id |= 1 << 249;
        if (standard == Standard.ERC20) id |= 1 << 248;
    }

    function mintmarkTokenId(bytes calldata mintingBlob) external pure returns (uint256) {
        return MintingBlob.tokenId(mintingBlob);
    }

    function rawTokenId(bytes calldata mintingBlob) external pure returns (uint256) {
        return MintingBlob.rawTokenId(mintingBlob);
    }

    function imxTokenId(
        bytes calldata mintingBlob
    ) external pure returns (uint256 id, uint256 blueprintStart) {
        return MintingBlob.imxTokenId(mintingBlob);
    }

    function node(bytes32 left, bytes32 right) external pure returns (bytes32) {
        return StateProof.node(left, right);
    }

    function vaultLeaf(Vault calldata vault, uint256 assetIndex) external pure returns (bytes32) {
        return _leafOf(vault, assetIndex);
    }

    function stateLeaf(
        uint64 batchNumber,
        uint32 vaultCount,
        bytes32 dataHash,
        bytes32 batchRoot
    ) external pure returns (bytes32) {
        return StateProof.stateLeaf(batchNumber, vaultCount, dataHash, batchRoot);
    }

    function nextHistory(bytes32 history, Mode mode, bytes32 leaf) external pure returns (bytes32) {
        return StateProof.nextHistory(history, mode, leaf);
    }

    function headerHash(BatchHeader calldata header) external pure returns (bytes32) {
        return StateProof.headerHash(header);
    }

    function stateCommitment(
        uint64 chainId,
        address source,
        bytes32 rootValidium,
        bytes32 rootRollup,
        uint64 countValidium,
        uint64 countRollup
    ) external pure returns (bytes32) {
        return
            StateProof.stateCommitment(
                chainId,
                source,
                rootValidium,
                rootRollup,
                countValidium,
                countRollup
            );
    }

    function fold(
        bytes32 leaf,
        uint256 position,
        bytes32[] calldata siblings
    ) external pure returns (bytes32) {
        return StateProof.fold(leaf, position, siblings);
    }

    function foldEmpty(
        uint256 position,
        bytes32[] calldata siblings
    ) external pure returns (bytes32) {
        return StateProof.foldEmpty(position, siblings);
    }

    function hashBatchRoot(
        uint8 kind,
        bytes32 manifestRoot,
        bytes32 content
    ) external pure returns (bytes32) {
        return Manifest.batchRoot(kind, manifestRoot, content);
    }

    function manifestLeaf(uint64 chainId, uint256 type_) external pure returns (bytes32) {
        return Manifest.leaf(chainId, type_);
    }

    /// @param leftOut Bit i makes the leaf of asset i zero.
    function hashManifest(bytes calldata assets, uint256 leftOut) external pure returns (bytes32) {
        Manifest.count(assets);
        return Manifest.root(assets, leftOut);
    }

    function manifestRootOf(
        uint64 chainId,
        uint256 type_,
        uint8 index,
        bytes32[] calldata siblings
    ) external pure returns (bool shown, bytes32 root) {
        return StateProof.manifestRootOf(chainId, type_, index, siblings);
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
        return
            StateProof.verifyConsistency(oldRoot, oldCount, newRoot, newCount, leaf, atOld, atNew);
    }

    function wordsOf(
        Vault calldata vault,
        uint256 assetIndex
    ) external pure returns (uint256 head, bytes memory continuations) {
        return VaultWords.wordsOf(vault, assetIndex);
    }

    function placed(uint256 head, uint256 place) external pure returns (uint256) {
        return VaultWords.placed(head, place);
    }

    function pointOf(uint256 place) external pure returns (uint256) {
        return BlobVaults.pointOf(place);
    }

    function blobContent(
        uint256 vaultCount,
        bytes32 manifestHash,
        bytes32[] calldata versionedHashes
    ) external pure returns (bytes32) {
        return BlobVaults.content(vaultCount, manifestHash, versionedHashes);
    }

    function committedBlobs() external view returns (bytes32[] memory) {
        return BlobVaults.committed();
    }
}
