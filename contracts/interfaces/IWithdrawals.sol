// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {BatchHeader, Vault, VaultPath, WithdrawalGroup, WithdrawalTerms} from "./Model.sol";

/// @title Withdrawals: whoever proves a vault and has its owner's authorization mints the token.
interface IWithdrawals {
    /// @param quantity Quantized units of this withdrawal.
    /// @param withdrawnTotal Quantized units of all withdrawals of the vault, this one included.
    event Withdrawn(
        uint64 indexed vaultId,
        address indexed recipient,
        uint64 quantity,
        uint64 withdrawnTotal
    );
    /// @notice An item of a batch of withdrawals failed and had no effect. `reason` is the error
    /// that it would revert with alone.
    event WithdrawalFailed(uint64 indexed vaultId, bytes reason);

    /// @notice The vault's batch is older than the registration of its asset, which counts from
    /// sequence `since`. The vault never counts.
    error BatchBeforeRegistration(uint64 vaultId, uint64 since);
    /// @notice The token lives on another chain.
    error OtherChain(uint64 chainId);
    /// @notice The amount of an ERC-721 is 1.
    error AmountInvalid(uint64 vaultId, uint64 amount);
    /// @notice A minting blob has no byte for an ERC-20, and at least one for other tokens.
    error MintingBlobLengthInvalid(uint64 vaultId, uint256 length);
    /// @notice An ERC-721 vault can be withdrawn from this time on, so that a duplicate can be
    /// voided before.
    error NotMature(uint64 vaultId, uint64 maturesAt);
    error QuantityZero(uint64 vaultId);
    error QuantityTooLarge(uint64 vaultId, uint64 quantity, uint64 available);
    error RecipientZero(uint64 vaultId);
    /// @notice Neither the caller nor the signer of the item's list owns the vault.
    error NotOwner(uint64 vaultId, address account);
    error AuthorizationExpired(uint64 deadline);
    /// @notice The signer has cancelled the list or the order, or all that it signs of this vault.
    /// @param id The digest of the list or the order, or the vault's id.
    error AuthorizationIsCancelled(bytes32 id);
    /// @notice The account has not signed this digest.
    error SignatureInvalid(bytes32 digest);
    /// @notice The item's list, or the order, names another quantity as withdrawn before.
    error NotListed(uint64 vaultId);
    /// @notice `mintFor` reverted. `reason` is the first 256 bytes of its error.
    error TokenRefused(address token, bytes reason);
    error NotSelf();
    /// @notice A committed record spends the vault. {ITransfers-withdrawTransferred} pays the owner
    /// that it has.
    error VaultSpent(uint64 vaultId);
    /// @notice Item `index` of all items would get less gas than `itemGas`.
    error GasTooLow(uint256 index);
    /// @notice An item needs at least `MIN_ITEM_GAS`.
    error ItemGasTooLow(uint64 itemGas);

    /// @notice Mints `quantity` of the vault's token to `recipient`. The owner calls; what owners
    /// sign, {withdrawBatch} takes.
    /// @dev All effects come before the call of the token. If the token reverts, the vault stays as
    /// it was.
    /// @param quantity Quantized units.
    function withdraw(
        Vault calldata vault,
        BatchHeader calldata header,
        VaultPath calldata path,
        uint64 quantity,
        address recipient
    ) external;

    /// @notice Many withdrawals, each independent of the others. {WithdrawalFailed} reports one
    /// that fails.
    /// @dev Reverts with {GasTooLow} when the caller leaves an item less gas than `itemGas`, so
    /// that no caller can make an item fail by a lack of gas. Malformed framing of items reverts
    /// the whole call.
    /// @param groups The items of one group share a batch and an asset. Both are checked once for
    /// the group.
    /// @param lists Lists of vaults that owners have signed, in the format of docs/protocol.md 6.
    /// Each is checked once, with `itemGas`. An invalid list fails its own items only. Its items
    /// may come in any order, in one call or in several.
    /// @param itemGas Gas for one item: its proof and token call together. At least `MIN_ITEM_GAS`.
    /// An item of a transferred vault gets 300,000 more.
    /// @return failed How many items failed.
    function withdrawBatch(
        WithdrawalGroup[] calldata groups,
        bytes[] calldata lists,
        uint64 itemGas
    ) external returns (uint256 failed);

    /// @notice Reverts unless the packed list is valid now: before its deadline, not cancelled, and
    /// signed by its owner.
    function checkList(bytes calldata list) external view;

    /// @notice The terms that all vaults of a batch and an asset of this chain share. Reverts when
    /// none of them can be withdrawn now.
    /// @param vaultId Any vault of the batch.
    /// @param assetIndex The asset's place in the batch's manifest.
    /// @param assetSiblings The asset's siblings in the manifest, from the leaf upwards.
    function withdrawalTerms(
        uint64 vaultId,
        uint256 assetType,
        BatchHeader calldata header,
        uint8 assetIndex,
        bytes32[] calldata assetSiblings
    ) external view returns (WithdrawalTerms memory);

    /// @notice Seconds that an ERC-721 vault waits after its commit.
    function maturity() external view returns (uint64);
}

/// @title Cancelling what an owner has signed.
interface ICancellations {
    /// @param id The digest of a list or an order, or the id of a vault.
    event AuthorizationCancelled(address indexed signer, bytes32 indexed id);

    /// @notice Takes back, for ever, the signer's `WithdrawalList` or `Order` of a digest, whether
    /// it was signed or not, or what all its lists and orders say of a vault. The signer can still
    /// call {IWithdrawals-withdraw}. Nothing else of the vault changes: neither who owns it, nor
    /// which transfers count.
    /// @param id The EIP-712 digest of the list or the order, or the vault's id.
    /// @param signature Empty when the signer calls. Otherwise the signer's, over the EIP-712
    /// message `Cancellation`. Anybody may bring it; only the first time does anything.
    function cancel(address signer, bytes32 id, bytes calldata signature) external;

    function isCancelled(address signer, bytes32 id) external view returns (bool);
}
