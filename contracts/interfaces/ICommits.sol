// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {Mode} from "./Model.sol";

/// @title Commits: what an operator appends to the state.
interface ICommits {
    /// @notice A batch is committed. The event holds all that {withdraw} needs of the batch, and
    /// all that a reader needs to follow the state.
    event BatchCommitted(
        Mode indexed mode,
        uint64 indexed batchNumber,
        bytes32 batchRoot,
        uint32 vaultCount,
        bytes32 dataHash,
        uint64 committedAt,
        uint64 sequence
    );
    /// @notice Comes just before the batch's {BatchCommitted}. The issuers of these assets have not
    /// consented, so L1 leaves them out. Each has a zero leaf in the manifest, and its vaults in
    /// this batch pay nobody.
    /// @param assets Bit i stands for asset i of the manifest.
    event AssetsLeftOut(Mode indexed mode, uint64 indexed batchNumber, uint256 assets);

    /// @notice Just before the other events of a batch that is committed by blobs.
    /// @param assets The manifest, packed.
    event BlobsCommitted(uint64 indexed batchNumber, bytes assets, bytes32[] versionedHashes);

    error CommittingPaused();
    /// @notice Rollup data must be the input of its own transaction, so that it can be read from
    /// the chain.
    error NotPlainAccount(address caller);
    /// @notice `given < expected` is a replay, `given > expected` a gap.
    error BatchNumberMismatch(uint64 expected, uint64 given);
    /// @notice The batch follows another history. Another operator has committed since, or the
    /// operator's store belongs to another contract.
    error HistoryMismatch(bytes32 expected, bytes32 given);
    /// @notice The mode has taken 2^32 - 1 batches.
    error StateFull();
    /// @notice A batch has 1 to 2^20 vaults.
    error VaultCountInvalid(uint32 vaultCount);
    /// @notice The consent that begins there breaks off, or names an asset that the manifest does
    /// not have.
    error ConsentsMalformed(uint256 offset);

    /// @notice Appends a rollup batch. The contract computes the root from the data. Only for an
    /// operator that is a plain account, and not while commits are paused.
    /// @dev This order of arguments gives a low selector, which the dispatcher finds first: it
    /// saves 900 gas a commit. Malformed data reverts with `BatchDataInvalid` of the library
    /// BatchData, and a malformed table of assets with `ManifestInvalid` of Manifest.
    /// @param previous The {history} that the batch follows, of both modes.
    /// @param batchNumber The next of its mode.
    /// @param data The batch data, in the format of docs/protocol.md 4.
    /// @param consents The issuers' consents, one behind the other, in the format of
    /// docs/protocol.md 5. A missing or invalid consent does not revert the commit: L1 leaves its
    /// assets out ({AssetsLeftOut}).
    function commitRollupBatch(
        bytes32 previous,
        bytes calldata consents,
        uint64 batchNumber,
        bytes calldata data
    ) external;

    /// @notice Appends a validium batch, for which the data availability committee vouches.
    /// Operator only, and not while commits are paused.
    /// @param previous The {history} that the batch follows, of both modes.
    /// @param content Root of the vault tree.
    /// @param assets The batch's manifest: chainId(8) and assetType(32) of each asset, strictly
    /// ascending, at most 255.
    /// @param attestation Threshold, members and exactly `threshold` signatures; docs/protocol.md
    /// 5. Members sign the batch root with the whole manifest, also when L1 leaves assets out.
    /// @param consents See {commitRollupBatch}.
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

    /// @notice Appends a batch whose vaults are the blobs of this transaction, all of them: 1 to 6.
    /// Operator only, and not while paused. The caller must be a plain account, so that one
    /// transaction commits its blobs once.
    /// @dev L1 reads no blob; a withdrawal opens the vault's own words. On a chain without the
    /// point evaluation precompile it reverts (`NoPointEvaluation` of the library BlobVaults).
    /// @param previous The {history} that the batch follows, of both modes.
    /// @param batchNumber The next of its mode, zk-rollup.
    /// @param vaultCount The batch's slots, at most 4096 a blob; the elements behind them are
    /// continuations.
    /// @param assets See {commitValidiumBatch}. An element names its asset by a place in it.
    /// @param consents See {commitRollupBatch}.
    function commitBlobBatch(
        bytes32 previous,
        uint64 batchNumber,
        uint32 vaultCount,
        bytes calldata assets,
        bytes calldata consents
    ) external;
}
