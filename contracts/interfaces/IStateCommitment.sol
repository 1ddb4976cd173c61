// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {IAssetRegistry} from "./IAssetRegistry.sol";
import {ICommittee} from "./ICommittee.sol";
import {IIssuers} from "./IIssuers.sol";
import {IOperatorRoles} from "./IOperatorRoles.sol";
import {IWithdrawals} from "./IWithdrawals.sol";
import {Mode} from "./Model.sol";

/// @title The L1 side of Mintmark: append-only state, and withdrawals that need nobody's help.
/// @notice Everything off-chain can be rebuilt from this contract's events and the commits' calldata.
interface IStateCommitment is IOperatorRoles, ICommittee, IAssetRegistry, IIssuers, IWithdrawals {
    // ---- Commits

    /// @notice All that {withdraw} will ask of the batch, and all that a reader needs to follow the state.
    event BatchCommitted(
        Mode indexed mode,
        uint64 indexed batchNumber,
        bytes32 batchRoot,
        uint32 vaultCount,
        bytes32 dataHash,
        uint64 committedAt,
        uint64 sequence
    );
    /// @notice Just before the batch's {BatchCommitted}: assets whose issuer's consent was not there, or not taken. The manifest has a zero leaf in the place
    /// of each, so their vaults in this batch pay nobody.
    /// @param assets Bit i stands for asset i of the manifest.
    event AssetsLeftOut(Mode indexed mode, uint64 indexed batchNumber, uint256 assets);

    /// @notice Just before the other events of a batch that is committed by blobs.
    /// @param assets The manifest, packed.
    event BlobsCommitted(uint64 indexed batchNumber, bytes assets, bytes32[] versionedHashes);

    error CommittingPaused();
    /// @notice Rollup data must be the input of its own transaction, so that it can be read from the chain.
    error NotPlainAccount(address caller);
    /// @notice `given < expected` is a replay, `given > expected` a gap.
    error BatchNumberMismatch(uint64 expected, uint64 given);
    /// @notice The batch extends another history than this contract's: another operator has committed since, or it is another store's.
    error HistoryMismatch(bytes32 expected, bytes32 given);
    /// @notice The mode has taken 2^32 - 1 batches.
    error StateFull();
    /// @notice The vault tree's root of a batch that holds nothing.
    error BatchRootZero();
    /// @notice Not 1 to 2^20.
    error VaultCountInvalid(uint32 vaultCount);
    /// @notice The consent that begins there breaks off, or names an asset that the manifest does not have.
    error ConsentsMalformed(uint256 offset);

    /// @notice Most vaults of one rollup batch; as many as surely fit a transaction.
    function MAX_ROLLUP_VAULTS() external view returns (uint256);

    /// @notice Appends a batch whose root is computed here, from its data. Operator only, a plain account, and not while paused.
    /// @dev The arguments stand in the order that gives a low selector, which is found first: 900 gas less a commit. Malformed data reverts with `BatchDataInvalid` of the library BatchData, its assets with `ManifestInvalid` of Manifest.
    /// @param previous The {history} that the batch follows, of both modes.
    /// @param batchNumber The next of its mode.
    /// @param data By the grammar of docs/protocol.md 4.
    /// @param consents Of the issuers, one behind the other, packed as docs/protocol.md 5 says. A consent that is missing or does not count
    /// reverts nothing: its assets are left out ({AssetsLeftOut}).
    function commitRollupBatch(bytes32 previous, bytes calldata consents, uint64 batchNumber, bytes calldata data) external;

    /// @notice Appends a batch whose vaults the data availability committee vouches for. Operator only, and not while paused.
    /// @param previous The {history} that the batch follows, of both modes.
    /// @param content Root of the vault tree.
    /// @param assets The batch's manifest: chainId(8) and assetType(32) of each asset, strictly ascending, at most 255.
    /// @param attestation Threshold, members and exactly as many signatures as the threshold says; docs/protocol.md 5. Members sign the root of
    /// the batch with its whole manifest, whatever is left out of it.
    /// @param consents As in {commitRollupBatch}.
    function commitValidiumBatch(
        bytes32 previous,
        uint64 batchNumber,
        bytes32 content,
        uint32 vaultCount,
        bytes32 dataHash,
        bytes calldata assets,
        bytes calldata attestation,
        bytes calldata consents
    ) external;

    /// @notice Appends a batch whose vaults are the blobs of this transaction, all of them: 1 to 6. Operator only, and not while paused.
    /// @dev L1 reads no blob; a withdrawal opens the vault's own elements. On a chain without the point evaluation precompile it reverts
    /// (`NoPointEvaluation` of the library BlobVaults).
    /// @param previous The {history} that the batch follows, of both modes.
    /// @param batchNumber The next of its mode, zk-rollup.
    /// @param vaultCount The batch's slots, at most 4096 a blob; the elements behind them are continuations.
    /// @param assets As in {commitValidiumBatch}. An element names its asset by a place in it.
    /// @param consents As in {commitRollupBatch}.
    function commitBlobBatch(bytes32 previous, uint64 batchNumber, uint32 vaultCount, bytes calldata assets, bytes calldata consents) external;

    // ---- State

    /// @notice One hash over all commits of both modes in their order; every commit names it and replaces it. Holds no block time, so that
    /// several commits can be under way at once. Before the first commit it is the commitment of the empty state.
    function history() external view returns (bytes32);
    function batchCounts() external view returns (uint64 validium, uint64 rollup);
    /// @notice Root of a mode's tree of batches.
    function stateRoot(Mode mode) external view returns (bytes32);
    /// @notice One hash over both roots and counts, this chain and this contract.
    function stateCommitment() external view returns (bytes32);
    /// @notice ERC-721 is available from 4, ERC-20 and ERC-1155 from 5.
    function engineVersion() external pure returns (uint256);
}
