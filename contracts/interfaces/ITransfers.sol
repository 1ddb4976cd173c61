// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {BatchHeader, Transfer, Vault, VaultPath, WithdrawalTerms} from "./Model.sol";

/// @title Transfers: what owners do with vaults before they withdraw; docs/protocol.md 10.
/// @notice A commit checks deadlines and batch numbers. Each record counts or does not count by the
/// same rule for ever, except that {IVaultProofs-voidDuplicate} can take a vault from everybody who
/// has not withdrawn it. So of the owner before a record and the owner after it, exactly one can
/// withdraw.
/// @dev The functions are code of their own: {IDeployment-transfersCode}.
interface ITransfers {
    /// @notice Just before the batch's {ICommits-BatchCommitted}. The transfer data is the
    /// transaction's input.
    event TransfersCommitted(uint64 indexed batchNumber);
    /// @param digest The EIP-712 digest of the message.
    event TransfersApproved(address indexed owner, bytes32 indexed digest, uint64 approvedAt);
    event TransfersCancelled(address indexed owner, bytes32 indexed digest, uint64 cancelledAt);
    /// @param assetType The only asset of the session; zero for every asset of the owner.
    event SessionAuthorized(
        address indexed owner,
        address indexed key,
        uint64 until,
        uint64 limit,
        uint256 assetType,
        uint64 authorizedAt
    );
    event SessionRevoked(address indexed owner, address indexed key, uint64 revokedAt);

    /// @notice The data breaks the grammar of docs/protocol.md 10, in the group that begins at this
    /// byte.
    error TransferDataInvalid(uint256 offset);
    /// @notice An earlier record, of this batch or of another one, spends this vault.
    error Spent(uint64 vaultId);
    /// @notice A record spends a vault of a batch that is not on L1.
    error BatchUnknown(uint64 vaultId);
    /// @notice No record of this group could count.
    error DeadlinePassed(uint64 deadline);
    /// @notice Vaults of this asset cannot be transferred.
    error NotTransferable(uint256 assetType);
    /// @notice A record spends this vault, but its owner has not given it away by that.
    error TransferInvalid(uint64 vaultId);
    /// @notice The session needs a key, a limit above zero, and an end in the future.
    error SessionInvalid();
    /// @notice The owner has authorized or revoked this key before. A session needs a key of its
    /// own.
    error SessionKeyUsed(address owner, address key);

    /// @notice Appends a rollup batch of transfers, whose records the data availability committee
    /// has checked. Only for an operator that is a plain account, and not while commits are paused.
    /// @dev The contract checks of a record only its deadline and its vault's batch. It marks each
    /// vault that one spends.
    /// @param previous The {IHistory-history} that the batch follows, of both modes.
    /// @param batchNumber The next of its mode, zk-rollup.
    /// @param data The transfer data, in the grammar of docs/protocol.md 10.
    /// @param attestation See {ICommits-commitValidiumBatch}; over the message `TransferBatch`.
    function commitTransferBatch(
        bytes32 previous,
        uint64 batchNumber,
        bytes calldata data,
        bytes calldata attestation
    ) external;

    /// @notice {IWithdrawals-withdraw} of a vault that was transferred, or of one that an invalid
    /// record spends.
    /// @param origin The minted vault, with the proof of {IWithdrawals-withdraw}.
    /// @param hops The records from the minted vault to the tip, in order, each with its proof, in
    /// the format of docs/protocol.md 10. The owner of the tip calls.
    /// @param refutation The record that spends the tip, if there is one. The call shows that it
    /// does not count.
    /// @param quantity Quantized units of the tip.
    function withdrawTransferred(
        Vault calldata origin,
        BatchHeader calldata header,
        VaultPath calldata path,
        bytes calldata hops,
        bytes calldata refutation,
        uint64 quantity,
        address recipient
    ) external;

    /// @notice One item of {IWithdrawals-withdrawBatch} whose vault was transferred. Only this
    /// contract calls it, as {IWithdrawals-withdrawItem}.
    function withdrawTransferredItem(
        WithdrawalTerms calldata terms,
        uint64 vaultId,
        uint256 assetType,
        uint256 by
    ) external;

    /// @notice Who owns a vault, after all its transfers. Reverts as {withdrawTransferred} does,
    /// but takes an ERC-721 that is not mature.
    /// @return owner The tip's owner; zero when it is redeemed.
    /// @return amount Quantized units of the tip that are not withdrawn; 0 for a voided ERC-721.
    function verifyTransferred(
        Vault calldata origin,
        BatchHeader calldata header,
        VaultPath calldata path,
        bytes calldata hops,
        bytes calldata refutation
    ) external view returns (address owner, uint64 amount);

    /// @notice Approves a `Transfers` message in place of a signature, for ever. Batches of later
    /// seconds count.
    function approveTransfers(Transfer[] calldata transfers, uint64 deadline) external;

    /// @notice Cancels a `Transfers` message of the caller's, by its EIP-712 digest, for ever: no
    /// record of it counts in batches of later seconds. Earlier records stay.
    function cancelTransfers(bytes32 digest) external;

    /// @notice Lets a key transfer the owner's vaults, in batches of later seconds.
    /// @dev One session for each owner and key, for ever.
    /// @param until Last second of the session.
    /// @param limit Most quantized units of one record. A record of a whole vault counts with the
    /// vault's full amount. A record that leaves change counts only if at most three records lie
    /// between the mint and the vault, so that the key leaves the owner half of the eight.
    /// @param assetType The only asset; zero for every asset of the owner.
    /// @param signature Empty when the owner calls. Otherwise the owner's, over the EIP-712 message
    /// `Session`.
    function authorizeSession(
        address owner,
        address key,
        uint64 until,
        uint64 limit,
        uint256 assetType,
        bytes calldata signature
    ) external;

    /// @notice Ends the owner's session with a key: records of batches of later seconds do not
    /// count. A key that has no session can never have one.
    /// @param signature See {authorizeSession}; over the EIP-712 message `SessionEnd`.
    function revokeSession(address owner, address key, bytes calldata signature) external;

    /// @notice Times in seconds since 1970; zero for never.
    function session(
        address owner,
        address key
    )
        external
        view
        returns (
            uint64 authorizedAt,
            uint64 until,
            uint64 revokedAt,
            uint64 limit,
            uint256 assetType
        );

    /// @notice When the account approved and cancelled a digest, in seconds since 1970; zero for
    /// never.
    function approval(
        address owner,
        bytes32 digest
    ) external view returns (uint64 approvedAt, uint64 cancelledAt);

    /// @notice Whether a committed record spends the vault.
    function isSpent(uint64 vaultId) external view returns (bool);
}
