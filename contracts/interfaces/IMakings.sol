// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {BatchHeader, Mode, WithdrawalGroup} from "./Model.sol";

/// @dev A batch or making, and an asset of this chain in it, for the vaults of {IMakings-settle}.
struct TradedAsset {
    Mode mode;
    uint64 batchNumber;
    BatchHeader header;
    uint256 assetType;
    /// @dev The asset's place in the batch's manifest.
    uint8 assetIndex;
    /// @dev The asset's siblings in the manifest, from the leaf upwards, at most eight.
    bytes32[] assetSiblings;
}

/// @title Makings: the vaults that L1 itself makes; docs/protocol.md 11.
/// @notice A made vault has an id of its own series: `1 << 62 | making << 20 | slot`. It exits as
/// every vault does, by {IWithdrawals-withdraw} with the making's header, whose `committedAt` is 0.
/// So it waits for no maturity. Nobody but the token that makes it takes part, and no operator can
/// leave it out.
/// @dev The functions are code of their own: {IDeployment-makingsCode}.
interface IMakings {
    /// @notice L1 has made vaults. Their {VaultMade} events come directly before, in the order of
    /// their slots. So their owners rebuild the making, whose assets stand in the order in which
    /// they come first. It is no commit, and a mirror never has it.
    /// @param sequence The number of commits before it, which is also in the header.
    event Made(uint64 indexed making, bytes32 batchRoot, uint32 vaultCount, uint64 sequence);
    /// @param amount Quantized units.
    event VaultMade(
        uint64 indexed vaultId,
        address indexed owner,
        uint256 indexed assetType,
        uint64 amount,
        bytes mintingBlob
    );
    /// @notice Behind the {VaultMade} of an ERC-721: from now on only this vault of the token, and
    /// what is made of it, counts.
    event TokenEntered(uint256 indexed assetType, uint256 indexed tokenId, uint64 making);

    /// @notice Two orders are settled. What both vaults gave is told by {IWithdrawals-Withdrawn}
    /// just before, and what was made of it by {VaultMade} at the end of the call.
    event Traded(uint64 indexed vaultId, uint64 indexed otherVaultId);
    /// @notice A trade failed and had no effect. `reason` is the error that it reverted with.
    event TradeFailed(uint64 indexed vaultId, uint64 indexed otherVaultId, bytes reason);

    /// @notice Only the asset's own contract makes vaults of it.
    error NotToken(uint256 assetType, address caller);
    /// @notice The base units are no whole number of quantized units.
    error AmountIndivisible(uint256 amount, uint256 quantum);
    /// @notice Nobody could ever withdraw a vault of this owner, amount and minting blob, or it is
    /// of the making's 256th asset.
    error VaultUnpayable(address owner, uint256 amount, bytes mintingBlob);
    /// @notice A renewal takes its list whole. An entry of the list has no item, or two.
    error RenewalIncomplete();
    /// @notice The vault's order wants more units than the other side gives.
    error OrderUnmet(uint64 vaultId, uint64 wanted, uint64 given);
    /// @notice A share of the vault's order is of the zero address, of no units, or of more than
    /// the other side gives.
    error ShareInvalid(uint64 vaultId);
    /// @notice The trades before this one have made so many vaults that the call has no room left.
    error MakingFull();
    /// @notice A renewal holds a second vault of one ERC-721 token.
    error TokenTwice(uint64 vaultId);

    /// @notice Makes one vault of units that the caller, the asset's token on this chain, has taken
    /// out of its supply. No minting role and no issuer takes part: the token speaks for its
    /// supply.
    /// @dev For an ERC-721 the token's earlier vaults end ({TokenEntered}), those of batches and of
    /// earlier makings alike. Otherwise a vault that nobody has withdrawn, because the token
    /// existed, could be withdrawn now.
    /// @param amount Base units; 1 for an ERC-721.
    /// @param mintingBlob The minting blob by which the token mints them again.
    /// @return vaultId Final only when the transaction's block is: a reorganisation can change it.
    function make(
        uint256 assetType,
        address owner,
        uint256 amount,
        bytes calldata mintingBlob
    ) external returns (uint64 vaultId);

    /// @notice Takes all that a list of vaults says, and makes one vault of it for each asset and
    /// minting blob, in place of tokens. So small vaults become one, and a vault that transfers
    /// have given away eight times begins anew. All that a withdrawal checks holds, maturity
    /// included. Anybody may call this with the owner's signature over the EIP-712 message
    /// `RenewalList`. The owner's own call needs none.
    /// @dev The list is taken whole or not at all. Each vault tells what is taken of it by
    /// {IWithdrawals-Withdrawn}, with this contract as the recipient. Reverts with
    /// {ITransfers-NotTransferable} when the recipient is not the owner and an asset is not
    /// transferable.
    /// @param groups The groups are those of {IWithdrawals-withdrawBatch}. Each item names an entry
    /// of list 0.
    /// @param list The list is that of {IWithdrawals-withdrawBatch}. Its `recipient` owns the made
    /// vaults.
    /// @return making The making's number, final only when the transaction's block is.
    function renew(
        WithdrawalGroup[] calldata groups,
        bytes calldata list
    ) external returns (uint64 making);

    /// @notice Many trades, each independent of the others. {TradeFailed} reports one that fails.
    /// In a trade, two owners' vaults become each other's: each gives what its signed order says,
    /// and receives at least what the order wants, less the order's shares. A surplus goes to the
    /// signer. Anybody may call this; an owner who calls needs no signature of its own.
    /// @dev The signature is over the EIP-712 message `Order`. Of both vaults L1 checks all that a
    /// withdrawal checks, maturity included, and both assets are transferable. An order counts
    /// while its vault has as many units withdrawn as it says, so it counts once. A cancelled
    /// order, or one of a cancelled vault, does not count ({ICancellations-cancel}). A wallet
    /// contract is asked with at most 400,000 gas. One call makes at most 255 vaults.
    ///
    /// Reverts with {IWithdrawals-GasTooLow} when the caller leaves a trade less gas than
    /// `tradeGas`. Malformed framing of trades reverts the whole call.
    /// @param assets The batches and assets that the vaults lie in, at most 256.
    /// @param trades The trades, in the format of docs/protocol.md 11.
    /// @param tradeGas Gas for one trade, at least 2,000,000. A trade gets 300,000 more for each
    /// vault that was transferred.
    /// @return making The making's number, final only when the transaction's block is; 0 when no
    /// trade succeeds.
    /// @return failed How many trades failed.
    function settle(
        TradedAsset[] calldata assets,
        bytes calldata trades,
        uint64 tradeGas
    ) external returns (uint64 making, uint256 failed);
}
