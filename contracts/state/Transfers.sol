// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {ITransfers} from "../interfaces/ITransfers.sol";
import {IWithdrawals} from "../interfaces/IWithdrawals.sol";
import {
    BatchHeader,
    Mode,
    Transfer,
    Vault,
    VaultPath,
    WithdrawalTerms
} from "../interfaces/Model.sol";
import {Messages} from "../libraries/Messages.sol";
import {PackedItems} from "../libraries/PackedItems.sol";
import {TransferData} from "../libraries/TransferData.sol";
import {Appending} from "./Appending.sol";
import {OwnerSignatures} from "./OwnerSignatures.sol";
import {Tips} from "./Tips.sol";

/// @title The commits of transfers, which committed records count, and the exit of those who own a
/// vault by them.
///
/// @notice The way of a vault from its owner to another, and out:
///
///   1. The owner signs a list of transfers, or approves it here ({approveTransfers}), or has let a
///      key sign ({authorizeSession}).
///   2. The operator commits it ({commitTransferBatch}). L1 hashes the records, and sets one bit
///   for
///      each vault that a record spends. It checks no signature: the committee has.
///   3. Whoever exits proves the chain ({withdrawTransferred}): the mint as in {Withdrawals}, then
///      each record, whose rule {Tips-_counts} decides. The last vault is the tip.
///   4. A spent vault pays nobody by itself. If the record that spends it does not count, its owner
///      brings that record as a refutation.
///   5. The tip is paid as any vault ({Payouts-_pay}).
///
/// The settlement contract runs this code on its own storage. It has no state of its own,
/// no constructor and no immutable value, so each deployment of it has the same code.
contract Transfers is Appending, Tips, OwnerSignatures, ITransfers {
    /// @inheritdoc ITransfers
    function commitTransferBatch(
        bytes32 previous,
        uint64 batchNumber,
        bytes calldata data,
        bytes calldata attestation
    ) external {
        _requirePlainAccount();
        uint256 head = _beforeCommit(previous, Mode.ZkRollup, batchNumber);
        bytes32 dataHash = TransferData.hashOf(data);
        (bytes32 content, uint256 count) = TransferData.spend(
            data,
            (1 << 63) | (batchNumber << 20),
            head,
            head >> MAKINGS,
            _spent
        );
        bytes32 batchRoot = TransferData.batchRoot(content);
        uint64 epoch = uint64(head >> EPOCH);
        _checkAttestation(
            Messages.transferBatch(
                previous,
                batchNumber,
                batchRoot,
                uint32(count),
                dataHash,
                epoch
            ),
            epoch,
            attestation
        );
        emit TransfersCommitted(batchNumber);
        _append(head, previous, Mode.ZkRollup, batchNumber, batchRoot, uint32(count), dataHash);
    }

    /// @inheritdoc ITransfers
    function withdrawTransferred(
        Vault calldata origin,
        BatchHeader calldata header,
        VaultPath calldata path,
        bytes calldata hops,
        bytes calldata refutation,
        uint64 quantity,
        address recipient
    ) external nonReentrant {
        // This code has no constructor that could keep the maturity. The settlement contract
        // answers itself.
        WithdrawalTerms memory terms = _termsOf(
            origin,
            header,
            path,
            IWithdrawals(address(this)).maturity()
        );
        Vault memory tip = _tipOf(terms, origin, path.siblings, hops, refutation);
        _requireAsked(tip.vaultId, quantity, recipient);
        _pay(terms, tip, quantity, recipient, uint160(msg.sender));
    }

    /// @inheritdoc ITransfers
    function withdrawTransferredItem(
        WithdrawalTerms calldata terms,
        uint64 vaultId,
        uint256 assetType,
        uint256 by
    ) external {
        if (msg.sender != address(this)) revert IWithdrawals.NotSelf();
        WithdrawalTerms memory held = PackedItems.load(terms);
        bytes calldata item = PackedItems.called();
        (
            address mintedTo,
            bytes calldata hops,
            bytes calldata refutation,
            bytes calldata rest
        ) = PackedItems.wayOf(item);
        (
            ,
            uint64 amount,
            bytes memory mintingBlob,
            bytes32[] calldata siblings,
            uint64 quantity,
            address recipient
        ) = PackedItems.read(rest, vaultId);
        Vault memory tip = _tipOf(
            held,
            Vault(vaultId, uint64(block.chainid), mintedTo, assetType, amount, mintingBlob),
            siblings,
            hops,
            refutation
        );
        // The item and its list name the tip, so one entry never pays another vault.
        if (tip.vaultId != PackedItems.tipOf(item)) revert PackedItems.ItemMalformed(tip.vaultId);
        _requireAsked(tip.vaultId, quantity, recipient);
        _pay(held, tip, quantity, recipient, by);
    }

    /// @inheritdoc ITransfers
    function verifyTransferred(
        Vault calldata origin,
        BatchHeader calldata header,
        VaultPath calldata path,
        bytes calldata hops,
        bytes calldata refutation
    ) external view returns (address owner, uint64 amount) {
        WithdrawalTerms memory terms = _termsOf(origin, header, path, 0);
        Vault memory tip = _tipOf(terms, origin, path.siblings, hops, refutation);
        return (tip.owner, _restOf(tip, terms.standard));
    }

    /// @inheritdoc ITransfers
    function approveTransfers(Transfer[] calldata transfers, uint64 deadline) external {
        bytes32 digest = _digestOf(Messages.transfers(TransferData.listOf(transfers), deadline));
        // Only the first time counts, so that no record that counts by it ever stops to count.
        if (_approvals[msg.sender][digest].approvedAt != 0) return;
        _approvals[msg.sender][digest].approvedAt = uint64(block.timestamp);
        emit TransfersApproved(msg.sender, digest, uint64(block.timestamp));
    }

    /// @inheritdoc ITransfers
    function cancelTransfers(bytes32 digest) external {
        // Only the first time counts: a later one would let records count that did not.
        if (_approvals[msg.sender][digest].cancelledAt != 0) return;
        _approvals[msg.sender][digest].cancelledAt = uint64(block.timestamp);
        emit TransfersCancelled(msg.sender, digest, uint64(block.timestamp));
    }

    /// @inheritdoc ITransfers
    function authorizeSession(
        address owner,
        address key,
        uint64 until,
        uint64 limit,
        uint256 assetType,
        bytes calldata signature
    ) external {
        if (key == address(0) || limit == 0 || until <= block.timestamp) revert SessionInvalid();
        Session storage known = _sessions[owner][key];
        if (known.authorizedAt != 0 || known.revokedAt != 0) revert SessionKeyUsed(owner, key);
        _requireBy(owner, Messages.session(owner, key, until, limit, assetType), signature);
        uint64 now_ = uint64(block.timestamp);
        _sessions[owner][key] = Session(now_, until, 0, limit, assetType);
        emit SessionAuthorized(owner, key, until, limit, assetType, now_);
    }

    /// @inheritdoc ITransfers
    function revokeSession(address owner, address key, bytes calldata signature) external {
        Session storage known = _sessions[owner][key];
        // Only the first time counts: a later one would let records count that did not.
        if (known.revokedAt != 0) return;
        _requireBy(owner, Messages.sessionEnd(owner, key), signature);
        known.revokedAt = uint64(block.timestamp);
        emit SessionRevoked(owner, key, uint64(block.timestamp));
    }

    /// @inheritdoc ITransfers
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
        )
    {
        Session storage known = _sessions[owner][key];
        return (known.authorizedAt, known.until, known.revokedAt, known.limit, known.assetType);
    }

    /// @inheritdoc ITransfers
    function approval(
        address owner,
        bytes32 digest
    ) external view returns (uint64 approvedAt, uint64 cancelledAt) {
        Approval storage known = _approvals[owner][digest];
        return (known.approvedAt, known.cancelledAt);
    }

    /// @inheritdoc ITransfers
    function isSpent(uint64 vaultId) external view returns (bool) {
        return _isSpent(vaultId);
    }

    function _termsOf(
        Vault calldata origin,
        BatchHeader calldata header,
        VaultPath calldata path,
        uint64 maturity
    ) private view returns (WithdrawalTerms memory) {
        return
            _terms(
                origin.vaultId,
                origin.chainId,
                origin.assetType,
                header,
                path.assetIndex,
                path.assetSiblings,
                maturity
            );
    }

    function _domain() internal view override returns (bytes32) {
        return _computedDomain();
    }
}
