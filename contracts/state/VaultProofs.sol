// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {IVaultProofs} from "../interfaces/IVaultProofs.sol";
import {BatchHeader, BlobScheme, Mode, Standard, Vault, VaultPath} from "../interfaces/Model.sol";
import {BlobVaults} from "../libraries/BlobVaults.sol";
import {MintingBlob} from "../libraries/MintingBlob.sol";
import {StateProof} from "../libraries/StateProof.sol";
import {AssetRegistry} from "./AssetRegistry.sol";

/// @title Which vaults are in the state, whatever kind of batch has them, and which of two of one token counts.
/// @dev The inheriting contract writes `_headers`, and so decides which batches are the state.
abstract contract VaultProofs is AssetRegistry, IVaultProofs {
    mapping(Mode => mapping(uint64 batchNumber => bytes32)) internal _headers;
    /// @dev ERC-721: one bit a vault, withdrawn or voided.
    mapping(uint256 word => uint256 bits) internal _taken;

    /// @inheritdoc IVaultProofs
    function voidDuplicate(
        Vault calldata earlier,
        BatchHeader calldata earlierHeader,
        VaultPath calldata earlierPath,
        Vault calldata later,
        BatchHeader calldata laterHeader,
        VaultPath calldata laterPath
    ) external virtual {
        _prove(earlier, earlierHeader, earlierPath);
        _prove(later, laterHeader, laterPath);
        Asset storage found = _assets[later.chainId][later.assetType];
        bool sameAsset = earlier.chainId == later.chainId && earlier.assetType == later.assetType;
        if (!sameAsset || found.standard != Standard.ERC721 || later.chainId != block.chainid) {
            revert NotDuplicates(earlier.vaultId, later.vaultId);
        }
        bool ordered = earlierHeader.sequence < laterHeader.sequence
            || (earlierHeader.sequence == laterHeader.sequence && earlier.vaultId < later.vaultId);
        // An earlier vault that nobody can ever withdraw must not void a later one.
        bool exists = earlierHeader.sequence >= found.since && earlier.amount == 1 && earlier.owner != address(0)
            && earlier.blob.length != 0 && earlier.blob.length <= 255;
        if (!ordered || !exists || !_sameToken(found.scheme, earlier.blob, later.blob)) {
            revert NotDuplicates(earlier.vaultId, later.vaultId);
        }
        _take(later.vaultId);
        emit DuplicateVoided(earlier.vaultId, later.vaultId);
    }

    /// @inheritdoc IVaultProofs
    function batchHeaderHash(Mode mode, uint64 batchNumber) public view returns (bytes32) {
        return _headers[mode][batchNumber];
    }

    /// @dev Reverts unless the header is the stored one, the vault is below its root at the slot of its id, and the
    /// manifest names its asset.
    function _prove(Vault memory vault, BatchHeader memory header, VaultPath calldata path) internal view {
        _requireHeader(vault.vaultId, header);
        (bool shown, bytes32 manifestRoot) =
            StateProof.manifestRootOf(vault.chainId, vault.assetType, path.assetIndex, path.assetSiblings);
        if (!shown) revert ProofInvalid(vault.vaultId);
        _requireProven(vault, path.assetIndex, BlobVaults.Batch(header.batchRoot, manifestRoot, header.vaultCount), path.siblings);
    }

    function _requireHeader(uint64 vaultId, BatchHeader memory header) internal view {
        bytes32 stored = batchHeaderHash(Mode(vaultId >> 63), (vaultId << 1) >> 21);
        if (stored == 0 || StateProof.headerHash(header) != stored) revert HeaderMismatch(vaultId);
    }

    /// @dev A path of siblings proves a vault of a tree, a path of openings one of blobs. The batch root tells the
    /// kind, so that no path proves a vault in a batch of the other kind.
    function _requireProven(Vault memory vault, uint256 assetIndex, BlobVaults.Batch memory batch, bytes32[] calldata path) internal view {
        bool proven = StateProof.verifyVaultUnder(vault, batch.manifestRoot, batch.batchRoot, uint32(batch.vaultCount), path)
            || _opened(vault, assetIndex, batch, path);
        if (!proven) revert ProofInvalid(vault.vaultId);
    }

    function _opened(Vault memory vault, uint256 assetIndex, BlobVaults.Batch memory batch, bytes32[] calldata path)
        internal
        view
        virtual
        returns (bool)
    {
        return BlobVaults.opened(vault, assetIndex, batch, path);
    }

    function _take(uint64 vaultId) internal {
        uint256 word = _taken[vaultId >> 8];
        uint256 bit = 1 << (vaultId & 0xff);
        if (word & bit != 0) revert VaultExhausted(vaultId);
        _taken[vaultId >> 8] = word | bit;
    }

    function _sameToken(BlobScheme scheme, bytes calldata a, bytes calldata b) private pure returns (bool) {
        if (keccak256(a) == keccak256(b)) return true;
        if (scheme == BlobScheme.Raw32) return MintingBlob.rawTokenId(a) == MintingBlob.rawTokenId(b);
        if (scheme == BlobScheme.Mintmark) return MintingBlob.tokenId(a) == MintingBlob.tokenId(b);
        (uint256 idA,) = MintingBlob.imxTokenId(a);
        (uint256 idB,) = MintingBlob.imxTokenId(b);
        return idA == idB;
    }
}
