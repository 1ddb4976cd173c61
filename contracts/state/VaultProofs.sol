// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {IVaultProofs} from "../interfaces/IVaultProofs.sol";
import {
    BatchHeader,
    MintingBlobScheme,
    ENTERED,
    MADE,
    MADE_ONLY,
    Mode,
    SLOT_MASK,
    Standard,
    Vault,
    VaultPath
} from "../interfaces/Model.sol";
import {BlobVaults} from "../libraries/BlobVaults.sol";
import {MintingBlob} from "../libraries/MintingBlob.sol";
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
        if (!_isHeaderHash(vaultId, hash)) revert IVaultProofs.HeaderMismatch(vaultId);
    }

    /// @dev Whether it is the hash of the header of the vault's batch.
    function _isHeaderHash(uint64 vaultId, bytes32 hash) internal view returns (bool) {
        bytes32 stored = _headers[Mode(vaultId >> 63)][(vaultId << 1) >> 21];
        return stored != 0 && hash == stored;
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

    /// @dev Reverts when the vault has stopped to count, or never did. A vault that transfers made
    /// counts as the one at which they began: its own id is one of a batch.
    /// @param flags The flags of the vault's asset, an ERC-721 if an id has entered.
    function _requireCounted(
        Vault memory vault,
        MintingBlobScheme scheme,
        uint8 flags
    ) internal view {
        uint64 vaultId = vault.vaultId;
        uint64 making = vaultId & MADE == 0 ? 0 : _makingOf(vaultId);
        if (flags & MADE_ONLY != 0 && making == 0) revert IVaultProofs.VaultNotMade(vaultId);
        if (flags & ENTERED == 0) return;
        uint64 entry = _entries[vault.assetType][MintingBlob.idOf(scheme, vault.mintingBlob)];
        if (making < entry) revert IVaultProofs.LineageEnded(vaultId, entry);
    }

    /// @dev The number of the making of a made vault.
    function _makingOf(uint64 vaultId) internal pure returns (uint64) {
        return (vaultId & ~MADE) >> 20;
    }

    /// @dev Where L1 keeps what is withdrawn of a vault. Makings have few vaults each. So those of
    /// one slot lie side by side, and share a word. No vault of a batch has {MADE}, and the rest is
    /// all of the id's other bits.
    function _placeOf(uint64 vaultId) internal pure returns (uint64) {
        if (vaultId & MADE == 0) return vaultId;
        return MADE | ((vaultId & SLOT_MASK) << 42) | _makingOf(vaultId);
    }

    function _withdrawnOf(uint64 vaultId, Standard standard) internal view returns (uint64) {
        uint64 place = _placeOf(vaultId);
        if (standard == Standard.ERC721)
            return uint64((_taken[place >> 8].bits >> (place & 0xff)) & 1);
        return uint64(_withdrawn[place >> 2].bits >> ((place & 3) << 6));
    }

    function _isSpent(uint64 vaultId) internal view returns (bool) {
        return (_spent[vaultId >> 8] >> (vaultId & 0xff)) & 1 == 1;
    }

    function _take(uint64 vaultId) internal {
        uint64 place = _placeOf(vaultId);
        Word storage word = _taken[place >> 8];
        uint256 bits = word.bits;
        uint256 bit = 1 << (place & 0xff);
        if (bits & bit != 0) revert IVaultProofs.VaultExhausted(vaultId);
        word.bits = bits | bit;
    }
}
