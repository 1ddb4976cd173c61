// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {BatchHeader, Mode, Vault, VaultPath} from "./Model.sol";

/// @title Proofs of vaults against committed batches, and what they show of two vaults of one token.
interface IVaultProofs {
    event DuplicateVoided(uint64 indexed earlierVaultId, uint64 indexed laterVaultId);

    /// @notice The header is not the one that was committed at the place that the vault's id names.
    error HeaderMismatch(uint64 vaultId);
    /// @notice The vault is not below the batch's root at its slot, or the batch's manifest does not name its asset.
    error ProofInvalid(uint64 vaultId);
    /// @notice Withdrawn whole, or voided.
    error VaultExhausted(uint64 vaultId);
    /// @notice Not two vaults of one ERC-721 token of this chain, the earlier one first and both from after its registration.
    error NotDuplicates(uint64 earlierVaultId, uint64 laterVaultId);

    /// @notice Exhausts the later of two vaults of one ERC-721 token. Anyone may, until it has been withdrawn.
    /// @dev Later by sequence, then by slot. The same token by its id, as the blob scheme in the registry derives it.
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
}
