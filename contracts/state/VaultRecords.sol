// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {IVaultProofs} from "../interfaces/IVaultProofs.sol";
import {IWithdrawals} from "../interfaces/IWithdrawals.sol";
import {
    BatchHeader,
    MintingBlobScheme,
    MADE,
    Mode,
    Standard,
    TRANSFERABLE,
    Vault,
    VaultPath
} from "../interfaces/Model.sol";
import {MintingBlob} from "../libraries/MintingBlob.sol";
import {StateProof} from "../libraries/StateProof.sol";
import {VaultProofs} from "./VaultProofs.sol";

/// @title The records of a vault, and which of two of one token counts.
abstract contract VaultRecords is VaultProofs, IVaultProofs {
    /// @inheritdoc IVaultProofs
    function voidDuplicate(
        Vault calldata earlier,
        BatchHeader calldata earlierHeader,
        VaultPath calldata earlierPath,
        Vault calldata later,
        BatchHeader calldata laterHeader,
        VaultPath calldata laterPath
    ) external {
        Vault memory first = StateProof.load(earlier);
        Vault memory second = StateProof.load(later);
        _prove(first, earlierHeader, earlierPath);
        _prove(second, laterHeader, laterPath);
        Asset storage found = _assets[second.chainId][second.assetType];
        bool sameAsset = first.chainId == second.chainId && first.assetType == second.assetType;
        if (!sameAsset || found.standard != Standard.ERC721 || second.chainId != block.chainid) {
            revert NotDuplicates(first.vaultId, second.vaultId);
        }
        bool ordered =
            earlierHeader.sequence < laterHeader.sequence ||
                (earlierHeader.sequence == laterHeader.sequence && first.vaultId < second.vaultId);
        // An earlier vault that nobody can ever withdraw must not void a later one.
        bool exists =
            earlierHeader.sequence >= found.since &&
                first.amount == 1 &&
                first.owner != address(0) &&
                first.mintingBlob.length != 0;
        // L1 makes one vault of an id since its latest entry, and only those since then count.
        bool made = (first.vaultId | second.vaultId) & MADE != 0;
        if (
            made ||
            !ordered ||
            !exists ||
            !_sameToken(found.scheme, earlier.mintingBlob, later.mintingBlob)
        ) {
            revert NotDuplicates(first.vaultId, second.vaultId);
        }
        _take(second.vaultId);
        emit DuplicateVoided(first.vaultId, second.vaultId);
    }

    /// @inheritdoc IVaultProofs
    function batchHeaderHash(Mode mode, uint64 batchNumber) external view returns (bytes32) {
        return _headers[mode][batchNumber];
    }

    /// @inheritdoc IVaultProofs
    function verifyVault(
        Vault calldata vault,
        BatchHeader calldata header,
        VaultPath calldata path
    ) external view returns (uint64) {
        Vault memory held = StateProof.load(vault);
        _prove(held, header, path);
        Asset storage found = _assets[held.chainId][held.assetType];
        _requireCounted(held, found.scheme, found.flags);
        if (found.flags & TRANSFERABLE != 0 && _isSpent(held.vaultId))
            revert IWithdrawals.VaultSpent(held.vaultId);
        return _withdrawnOf(held.vaultId, found.standard);
    }

    /// @inheritdoc IVaultProofs
    function withdrawn(uint64 vaultId, Standard standard) external view returns (uint64) {
        return _withdrawnOf(vaultId, standard);
    }

    function _sameToken(
        MintingBlobScheme scheme,
        bytes calldata a,
        bytes calldata b
    ) private pure returns (bool) {
        return
            keccak256(a) == keccak256(b) ||
            MintingBlob.idOf(scheme, a) == MintingBlob.idOf(scheme, b);
    }
}
