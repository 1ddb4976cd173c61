// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {IVaultProofs} from "./IVaultProofs.sol";
import {Authorization, BatchHeader, Standard, Vault, VaultPath, WithdrawalGroup, WithdrawalTerms} from "./Model.sol";

/// @title The exit of owners: a proof of a vault and its owner's will mint the token.
interface IWithdrawals is IVaultProofs {
    /// @param quantity What this withdrawal took, quantized.
    /// @param withdrawnTotal What has been withdrawn of the vault, this included.
    event Withdrawn(uint64 indexed vaultId, address indexed recipient, uint64 quantity, uint64 withdrawnTotal);
    /// @notice An item of a batch of withdrawals had no effect; `reason` is the error that it would have reverted with alone.
    event WithdrawalFailed(uint64 indexed vaultId, bytes reason);
    event AuthorizationCancelled(address indexed signer, bytes32 indexed digest);

    /// @notice The vault's batch came before its asset was registered, as of sequence `since`: the vault never counts.
    error BatchBeforeRegistration(uint64 vaultId, uint64 since);
    /// @notice The token lives on another chain.
    error OtherChain(uint64 chainId);
    /// @notice Not 1 to 2^63 - 1, or not 1 for an ERC-721.
    error AmountInvalid(uint64 vaultId, uint64 amount);
    /// @notice Not 0 for an ERC-20, or not 1 to 255 for another.
    error BlobLengthInvalid(uint64 vaultId, uint256 length);
    /// @notice An ERC-721 vault waits until then, so that a duplicate can be voided.
    error NotMature(uint64 vaultId, uint64 maturesAt);
    error QuantityZero(uint64 vaultId);
    error QuantityTooLarge(uint64 vaultId, uint64 quantity, uint64 available);
    error RecipientZero(uint64 vaultId);
    /// @notice No signature, and the caller does not own the vault.
    error NotOwner(uint64 vaultId, address caller);
    error AuthorizationExpired(uint64 deadline);
    error AuthorizationIsCancelled(bytes32 digest);
    /// @notice Not the owner's signature over this digest: of the list, or of the vault, the quantity, the recipient, the deadline and what has
    /// been withdrawn before.
    error SignatureInvalid(bytes32 digest);
    /// @notice The item's list says that another total was withdrawn before.
    error NotListed(uint64 vaultId);
    /// @notice `mintFor` reverted; `reason` is the first 256 bytes of what it said.
    error TokenRefused(address token, bytes reason);
    error NotSelf();
    /// @notice Item `index` of all items would get less gas than the call sets aside for each.
    error GasTooLow(uint256 index);
    /// @notice Less gas for an item than `MIN_ITEM_GAS`.
    error ItemGasTooLow(uint64 itemGas);

    /// @notice Mints `quantity` of the vault's token to `recipient`, by the owner's own call or signature.
    /// @dev Effects before the token is called. A token that reverts leaves the vault as it was.
    /// @param quantity Quantized units.
    function withdraw(
        Vault calldata vault,
        BatchHeader calldata header,
        VaultPath calldata path,
        uint64 quantity,
        address recipient,
        Authorization calldata authorization
    ) external;

    /// @notice Many withdrawals, each on its own: {WithdrawalFailed} reports one that fails, and it undoes no other.
    /// @dev Reverts with {GasTooLow} when the caller leaves an item less gas than `itemGas`, so that no item fails for want of gas. Malformed
    /// framing of items is the caller's fault and reverts as a whole.
    /// @param groups The items of one group share a batch and an asset, which are checked once for all of them.
    /// @param lists What owners have signed for many vaults, packed as docs/protocol.md 6 says. Each is checked once, with `itemGas`: one that
    /// does not count fails its own items. Its items may come in any order, in one call or in several.
    /// @param itemGas Gas of one item: proof, signature and token call together. At least `MIN_ITEM_GAS`.
    /// @return failed How many items failed.
    function withdrawBatch(WithdrawalGroup[] calldata groups, bytes[] calldata lists, uint64 itemGas) external returns (uint256 failed);

    /// @notice Reverts unless the packed list counts now: before its deadline, not cancelled, and signed by its owner.
    function checkList(bytes calldata list) external view;

    /// @notice What the vault's batch and an asset of this chain settle for all of their vaults. Reverts when none can be withdrawn now.
    /// @param vaultId Any vault of the batch.
    /// @param assetIndex The asset's place in the batch's manifest.
    /// @param assetSiblings In the manifest, from the leaf upwards.
    function withdrawalTerms(
        uint64 vaultId,
        uint256 assetType,
        BatchHeader calldata header,
        uint8 assetIndex,
        bytes32[] calldata assetSiblings
    ) external view returns (WithdrawalTerms memory);

    /// @notice Makes an authorization that the caller signed, or might have, unusable for ever: the `Withdrawal` message of these values.
    function cancelAuthorization(uint64 vaultId, uint64 withdrawnBefore, uint64 quantity, address recipient, uint64 deadline) external;

    /// @notice The same for a list: the `WithdrawalList` message of these values.
    /// @param vaults 24 bytes for each: vaultId:u64 withdrawnBefore:u64 quantity:u64.
    function cancelList(bytes calldata vaults, address recipient, uint64 deadline) external;

    /// @notice Reverts unless the vault is in the committed state.
    /// @return withdrawnAmount What has been withdrawn of it, quantized; 1 for a voided ERC-721.
    function verifyVault(Vault calldata vault, BatchHeader calldata header, VaultPath calldata path)
        external
        view
        returns (uint64 withdrawnAmount);

    /// @notice What has been withdrawn of a vault, quantized; 1 for a voided ERC-721. The standard says where it is kept.
    function withdrawn(uint64 vaultId, Standard standard) external view returns (uint64);

    /// @notice Seconds that an ERC-721 vault waits after its commit.
    function maturity() external view returns (uint64);
}
