// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {BatchHeader, Mode, Standard, Vault, VaultPath} from "./Model.sol";

/// @title Proofs of vaults against committed batches, and what they show of two vaults of one
/// token.
interface IVaultProofs {
    event DuplicateVoided(uint64 indexed earlierVaultId, uint64 indexed laterVaultId);

    /// @notice The header is not that of the batch that the vault's id names.
    error HeaderMismatch(uint64 vaultId);
    /// @notice The vault is not below the batch's root at its slot, or the batch's manifest does
    /// not name its asset.
    error ProofInvalid(uint64 vaultId);
    /// @notice The vault is withdrawn whole, or voided.
    error VaultExhausted(uint64 vaultId);
    /// @notice The token has entered by making `entry` since. The vault, and each that transfers
    /// made of it, never counts again.
    error LineageEnded(uint64 vaultId, uint64 entry);
    /// @notice Only vaults that L1 has made count for this asset, so this one never does.
    error VaultNotMade(uint64 vaultId);
    /// @notice These are not two vaults of batches with one ERC-721 token of this chain, the
    /// earlier one first, both younger than its registration.
    error NotDuplicates(uint64 earlierVaultId, uint64 laterVaultId);

    /// @notice Exhausts the later of two vaults of one ERC-721 token, and so each vault that
    /// transfers made of it. Anyone may call this until the later one is withdrawn. A withdrawal
    /// through transfers exhausts only the last vault, which this call does not know: it still
    /// exhausts the later one then, and the token stays with whom it was paid to.
    /// @dev The later vault has the higher sequence, or the higher slot of one batch. Two vaults
    /// hold the same token if their ids are equal, derived by the minting blob scheme of the
    /// registry. {withdrawn} of the last vault tells whether it is paid.
    function voidDuplicate(
        Vault calldata earlier,
        BatchHeader calldata earlierHeader,
        VaultPath calldata earlierPath,
        Vault calldata later,
        BatchHeader calldata laterHeader,
        VaultPath calldata laterPath
    ) external;

    /// @notice Hash of the header of a batch; zero when it has not been committed.
    function batchHeaderHash(Mode mode, uint64 batchNumber) external view returns (bytes32);

    /// @notice Reverts unless the vault is in the committed state. Reverts with
    /// {IWithdrawals-VaultSpent} when owners can transfer the asset and a record spends the vault:
    /// {ITransfers-verifyTransferred} tells who owns it.
    /// @return withdrawnAmount Quantized units withdrawn so far; 1 for a voided ERC-721.
    function verifyVault(
        Vault calldata vault,
        BatchHeader calldata header,
        VaultPath calldata path
    ) external view returns (uint64 withdrawnAmount);

    /// @notice Quantized units withdrawn of a vault so far; 1 for a voided ERC-721. The standard
    /// tells where the contract keeps it.
    function withdrawn(uint64 vaultId, Standard standard) external view returns (uint64);
}
