// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {IAssetRegistry} from "../interfaces/IAssetRegistry.sol";
import {ICommits} from "../interfaces/ICommits.sol";
import {MAX_BATCH_VAULTS, Mode} from "../interfaces/Model.sol";
import {BatchData} from "../libraries/BatchData.sol";
import {BlobVaults} from "../libraries/BlobVaults.sol";
import {Consents} from "../libraries/Consents.sol";
import {Manifest} from "../libraries/Manifest.sol";
import {Messages} from "../libraries/Messages.sol";
import {StateProof} from "../libraries/StateProof.sol";
import {Appending} from "./Appending.sol";
import {Withdrawals} from "./Withdrawals.sol";

/// @title The append-only state: one incremental Merkle tree of batches per mode.
///
/// @notice The way of a batch into the state. The operator calls one of three functions, which tell
/// where the vaults' words are:
///
///   {commitRollupBatch}    in the call's own data. L1 hashes all of them.
///   {commitBlobBatch}      in the blobs of the transaction. L1 reads none of them.
///   {commitValidiumBatch}  with a committee. L1 gets the root, and counts the signatures.
///
///   1. The operator's account, the batch number and the history must be the next ones
///      ({Appending}). So a batch is committed once, behind those that its sender knew.
///   2. Each asset of the manifest must be registered ({_termsOf}).
///   3. The batch gets its content: the root of the vault tree, or the hash of the blobs.
///   4. Assets whose issuer has not consented are left out ({_leftOut}). A leaf of zero stands in
///      their place in the manifest, and all else stays as it is.
///   5. Content and manifest make the batch root. In validium the committee signs the root of the
///      whole manifest.
///   6. The batch's header is stored, and its leaf completes the state tree and the history
///      ({Appending-_append}).
///
/// No step reads a tag, an amount or a minting blob. Words that are no vault's words stay in the
/// state and pay nobody ({VaultWords}).
abstract contract Commits is Appending, Withdrawals, ICommits {
    /// @dev Most gas that an issuer's wallet contract can use in a commit.
    uint256 private constant CONSENT_GAS = 100_000;

    constructor() {
        bytes32 empty = StateProof.emptyRoot(StateProof.STATE_HEIGHT);
        _history = StateProof.stateCommitment(
            uint64(block.chainid),
            address(this),
            empty,
            empty,
            0,
            0
        );
    }

    /// @inheritdoc ICommits
    function commitRollupBatch(
        bytes32 previous,
        bytes calldata consents,
        uint64 batchNumber,
        bytes calldata data
    ) external {
        _requirePlainAccount();
        uint256 head = _beforeCommit(previous, Mode.ZkRollup, batchNumber);
        bytes calldata assets = BatchData.assets(data);
        (uint256[] memory terms, uint256 issued) = _termsOf(assets);
        (bytes32 content, uint256 vaultCount) = BatchData.root(
            data,
            (1 << 63) | (batchNumber << 20),
            ROLLUP_VAULTS
        );
        uint256 leftOut = _leftOut(
            Mode.ZkRollup,
            batchNumber,
            uint32(vaultCount),
            content,
            assets,
            terms,
            issued,
            consents
        );
        bytes32 batchRoot = _batchRoot(Mode.ZkRollup, assets, leftOut, content);
        _append(
            head,
            previous,
            Mode.ZkRollup,
            batchNumber,
            batchRoot,
            uint32(vaultCount),
            keccak256(data)
        );
    }

    /// @inheritdoc ICommits
    function commitBlobBatch(
        bytes32 previous,
        uint64 batchNumber,
        uint32 vaultCount,
        bytes calldata assets,
        bytes calldata consents
    ) external {
        // Each call of a contract in one transaction sees the same blobs. So one transaction
        // commits them once.
        _requirePlainAccount();
        uint256 head = _beforeCommit(previous, Mode.ZkRollup, batchNumber);
        (uint256[] memory terms, uint256 issued) = _termsOf(assets);
        bytes32[] memory versionedHashes = BlobVaults.committed();
        if (vaultCount == 0 || vaultCount > versionedHashes.length * BlobVaults.BLOB_ELEMENTS)
            revert VaultCountInvalid(vaultCount);
        bytes32 content = BlobVaults.content(vaultCount, Manifest.hashOf(assets), versionedHashes);
        emit BlobsCommitted(batchNumber, assets, versionedHashes);
        uint256 leftOut = _leftOut(
            Mode.ZkRollup,
            batchNumber,
            vaultCount,
            content,
            assets,
            terms,
            issued,
            consents
        );
        bytes32 batchRoot = BlobVaults.batchRoot(Manifest.root(assets, leftOut), content);
        _append(head, previous, Mode.ZkRollup, batchNumber, batchRoot, vaultCount, content);
    }

    /// @inheritdoc ICommits
    function commitValidiumBatch(
        bytes32 previous,
        uint64 batchNumber,
        bytes32 content,
        uint32 vaultCount,
        bytes32 dataHash,
        bytes calldata assets,
        bytes calldata attestation,
        bytes calldata consents
    ) external {
        uint256 head = _beforeCommit(previous, Mode.Validium, batchNumber);
        if (vaultCount == 0 || vaultCount > MAX_BATCH_VAULTS) revert VaultCountInvalid(vaultCount);
        (uint256[] memory terms, uint256 issued) = _termsOf(assets);
        uint256 leftOut = _leftOut(
            Mode.Validium,
            batchNumber,
            vaultCount,
            content,
            assets,
            terms,
            issued,
            consents
        );
        bytes32 batchRoot = _batchRoot(Mode.Validium, assets, 0, content);
        uint64 epoch = uint64(head >> EPOCH);
        _checkAttestation(
            Messages.validiumBatch(previous, batchNumber, batchRoot, vaultCount, dataHash, epoch),
            epoch,
            attestation
        );
        if (leftOut != 0) batchRoot = _batchRoot(Mode.Validium, assets, leftOut, content);
        _append(head, previous, Mode.Validium, batchNumber, batchRoot, vaultCount, dataHash);
    }

    /// @return terms The registry's word of each asset of the manifest; see {_termsAt}.
    /// @return issued The assets with an issuer; bit i stands for asset i.
    function _termsOf(
        bytes calldata assets
    ) private view returns (uint256[] memory terms, uint256 issued) {
        unchecked {
            terms = new uint256[](Manifest.count(assets));
            for (uint256 i; i < terms.length; ++i) {
                (uint64 chainId, uint256 assetType) = Manifest.assetAt(assets, i);
                uint256 term = _termsAt(chainId, assetType);
                if (term == 0) revert IAssetRegistry.AssetNotRegistered(chainId, assetType);
                if (_issuerIn(term) != address(0)) issued |= 1 << i;
                terms[i] = term;
            }
        }
    }

    /// @dev An invalid consent affects only the assets of its issuer.
    /// @param missing The assets that need a consent.
    /// @return The assets among them without a valid consent.
    function _leftOut(
        Mode mode,
        uint64 batchNumber,
        uint32 vaultCount,
        bytes32 content,
        bytes calldata assets,
        uint256[] memory terms,
        uint256 missing,
        bytes calldata consents
    ) private returns (uint256) {
        for (uint256 offset; offset < consents.length;) {
            uint256 named;
            address issuer;
            bytes32 assetsHash;
            bytes calldata signature;
            (offset, named, issuer, assetsHash, signature) = Consents.read(
                consents,
                offset,
                assets,
                terms
            );
            // A vault's words name its asset by a place. So the issuer signs all assets of the
            // batch. It signs the epochs of its own assets alone: otherwise a stranger who suspends
            // an issuer would void the consents of all others.
            bytes32 message = Messages.issuerConsent(
                uint8(mode),
                batchNumber,
                vaultCount,
                content,
                Manifest.hashOf(assets),
                assetsHash
            );
            if (issuer != address(0) && _signed(issuer, _digestOf(message), signature, CONSENT_GAS))
                missing &= ~named;
        }
        if (missing != 0) emit AssetsLeftOut(mode, batchNumber, missing);
        return missing;
    }

    function _batchRoot(
        Mode mode,
        bytes calldata assets,
        uint256 leftOut,
        bytes32 content
    ) private pure returns (bytes32) {
        return Manifest.batchRoot(uint8(mode), Manifest.root(assets, leftOut), content);
    }
}
