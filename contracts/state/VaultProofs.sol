// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {IVaultProofs} from "../interfaces/IVaultProofs.sol";
import {BatchHeader, Mode, Standard, Vault, VaultPath} from "../interfaces/Model.sol";
import {BlobVaults} from "../libraries/BlobVaults.sol";
import {StateProof} from "../libraries/StateProof.sol";
import {VaultWords} from "../libraries/VaultWords.sol";
import {VaultState} from "./VaultState.sol";

/// @title Which vaults are in the state, whatever kind of batch has them.
/// @dev The inheriting contract writes `_headers`, and so decides which batches are the state.
abstract contract VaultProofs is VaultState {
    /// @dev Reverts unless the header is the stored one, the vault is below its root at the slot of
    /// its id, and the manifest names its asset.
    function _prove(
        Vault memory vault,
        BatchHeader calldata header,
        VaultPath calldata path
    ) internal view {
        _requireHeader(vault.vaultId, header);
        (bool shown, bytes32 manifestRoot) = StateProof.manifestRootOf(
            vault.chainId,
            vault.assetType,
            path.assetIndex,
            path.assetSiblings
        );
        if (!shown) revert IVaultProofs.ProofInvalid(vault.vaultId);
        _requireProven(
            vault,
            path.assetIndex,
            header.batchRoot,
            manifestRoot,
            header.vaultCount,
            path.siblings
        );
    }

    function _requireHeader(uint64 vaultId, BatchHeader calldata header) internal view {
        _requireHeaderHash(vaultId, StateProof.headerHash(header));
    }

    function _requireHeaderHash(uint64 vaultId, bytes32 hash) internal view {
        bytes32 stored = _headers[Mode(vaultId >> 63)][(vaultId << 1) >> 21];
        if (stored == 0 || hash != stored) revert IVaultProofs.HeaderMismatch(vaultId);
    }

    /// @dev A path of siblings proves a vault of a tree, a path of openings one of blobs. The batch
    /// root tells the kind, so that no path proves a vault in a batch of the other kind.
    function _requireProven(
        Vault memory vault,
        uint256 assetIndex,
        bytes32 batchRoot,
        bytes32 manifestRoot,
        uint32 vaultCount,
        bytes32[] calldata path
    ) internal view {
        uint64 vaultId = vault.vaultId;
        (uint256 head, bytes memory continuations) = VaultWords.wordsOf(vault, assetIndex);
        bool proven =
            head != 0 &&
                (StateProof.verifyLeafUnder(
                    vaultId,
                    VaultWords.leaf(vaultId, head, continuations),
                    manifestRoot,
                    batchRoot,
                    vaultCount,
                    path
                ) ||
                    BlobVaults.opened(
                        vaultId,
                        head,
                        continuations,
                        BlobVaults.Batch(batchRoot, manifestRoot, vaultCount),
                        path
                    ));
        if (!proven) revert IVaultProofs.ProofInvalid(vaultId);
    }

    function _withdrawnOf(uint64 vaultId, Standard standard) internal view returns (uint64) {
        if (standard == Standard.ERC721)
            return uint64((_taken[vaultId >> 8] >> (vaultId & 0xff)) & 1);
        return uint64(_withdrawn[vaultId >> 2] >> ((vaultId & 3) << 6));
    }

    function _isSpent(uint64 vaultId) internal view returns (bool) {
        return (_spent[vaultId >> 8] >> (vaultId & 0xff)) & 1 == 1;
    }

    function _take(uint64 vaultId) internal {
        uint256 word = _taken[vaultId >> 8];
        uint256 bit = 1 << (vaultId & 0xff);
        if (word & bit != 0) revert IVaultProofs.VaultExhausted(vaultId);
        _taken[vaultId >> 8] = word | bit;
    }
}
