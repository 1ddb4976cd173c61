// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {MessageHashUtils} from "@openzeppelin/contracts/utils/cryptography/MessageHashUtils.sol";
import {ITransfers} from "../interfaces/ITransfers.sol";
import {IWithdrawals} from "../interfaces/IWithdrawals.sol";
import {
    BatchHeader,
    Mode,
    Standard,
    TRANSFERABLE,
    Transfer,
    Vault,
    VaultPath,
    WithdrawalTerms
} from "../interfaces/Model.sol";
import {Hops} from "../libraries/Hops.sol";
import {Messages} from "../libraries/Messages.sol";
import {PackedItems} from "../libraries/PackedItems.sol";
import {Signatures} from "../libraries/Signatures.sol";
import {TransferData} from "../libraries/TransferData.sol";
import {Appending} from "./Appending.sol";
import {OwnerSignatures} from "./OwnerSignatures.sol";
import {Payouts} from "./Payouts.sol";

/// @title The commits of transfers, which committed records count, and the exit of those who own a
/// vault by them.
///
/// @notice The way of a vault from its owner to another, and out:
///
///   1. The owner signs a list of transfers, or approves it here ({approveTransfers}), or has let a
///      key sign ({authorizeSession}).
///   2. The operator commits it ({commitTransferBatch}). L1 hashes the records, and sets one bit for
///      each vault that a record spends. It checks no signature: the committee has.
///   3. Whoever exits proves the chain ({withdrawTransferred}): the mint as in {Withdrawals}, then
///      each record, whose rule {_counts} decides. The last vault is the tip.
///   4. A spent vault pays nobody by itself. If the record that spends it does not count, its owner
///      brings that record as a refutation.
///   5. The tip is paid as any vault ({Payouts-_pay}).
///
/// The settlement contract runs this code on its own storage. It has no state of its own,
/// no constructor and no immutable value, so each deployment of it has the same code.
/// @dev Whether a record counts depends on nothing that the caller chooses. The answer never
/// changes from no to yes, and from yes to no only when the mint is voided as a duplicate. That
/// takes nothing from an owner whom the token has paid before.
contract Transfers is Appending, Payouts, OwnerSignatures, ITransfers {
    /// @dev Most records between a mint and an exit. Otherwise a vault could be split again and
    /// again, until no block has the gas for the exit. A vault has one chain, so this depends on no
    /// caller.
    uint256 private constant MAX_HOPS = 8;
    /// @dev Most records between a mint and the change that a session's key leaves. Otherwise the
    /// key could give away single units, until the owner can give away nothing.
    uint256 private constant MAX_SESSION_CHANGE_HOPS = 4;

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
            Vault memory vault,
            bytes32[] calldata siblings,
            uint64 quantity,
            address recipient
        ) = PackedItems.read(rest, vaultId, assetType);
        vault.owner = mintedTo;
        Vault memory tip = _tipOf(held, vault, siblings, hops, refutation);
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

    /// @dev The vault that a chain of records has made of a minted one. Reverts unless each record
    /// counts, and when a record that counts, or that nobody has refuted, spends the tip.
    function _tipOf(
        WithdrawalTerms memory terms,
        Vault memory tip,
        bytes32[] calldata siblings,
        bytes calldata hops,
        bytes calldata refutation
    ) private view returns (Vault memory) {
        if (terms.flags & TRANSFERABLE == 0) revert NotTransferable(tip.assetType);
        _requireVault(terms, tip, siblings);
        bytes32 domain = _domain();
        uint256 depth;
        for (uint256 offset; offset < hops.length; ++depth) {
            Hops.Hop memory hop;
            (hop, offset) = _recordAt(hops, offset, tip.vaultId);
            uint64 rest = _restOf(tip, terms.standard);
            if (!_counts(tip, terms.standard, rest, depth, hop, domain))
                revert TransferInvalid(tip.vaultId);
            // The other part is the change, which stays with the owner.
            uint64 paid = hop.amount == 0 ? rest : hop.amount;
            if (hop.isChange) tip.amount = rest - paid;
            else (tip.owner, tip.amount) = (hop.to, paid);
            tip.vaultId = hop.outId;
        }
        if (!_isSpent(tip.vaultId)) return tip;
        if (refutation.length == 0) revert IWithdrawals.VaultSpent(tip.vaultId);
        (Hops.Hop memory record, ) = _recordAt(refutation, 0, tip.vaultId);
        if (_counts(tip, terms.standard, _restOf(tip, terms.standard), depth, record, domain))
            revert IWithdrawals.VaultSpent(tip.vaultId);
        return tip;
    }

    /// @dev Reverts unless it is a committed record of this vault, so that no made-up record can be
    /// refuted in place of the one that is there. A vault has at most one.
    function _recordAt(
        bytes calldata hops,
        uint256 offset,
        uint64 inId
    ) private view returns (Hops.Hop memory hop, uint256 end) {
        (hop, end) = Hops.read(hops, offset, inId);
        _requireHeaderHash(hop.outId, hop.headerHash);
    }

    /// @dev Whether a committed record moves the vault. The commit has checked the deadline, and
    /// that an earlier batch could have made the vault.
    /// @param rest Units of the vault that are not withdrawn.
    /// @param depth The records between the mint and the vault.
    function _counts(
        Vault memory vault,
        Standard standard,
        uint64 rest,
        uint256 depth,
        Hops.Hop memory hop,
        bytes32 domain
    ) private view returns (bool) {
        if (depth >= MAX_HOPS) return false;
        // The whole rest has one spelling, zero, which stays right when the rest shrinks before the
        // commit.
        if (rest == 0 || (hop.amount != 0 && (standard == Standard.ERC721 || hop.amount >= rest)))
            return false;
        return _isAuthorized(vault, depth, hop, domain);
    }

    function _restOf(Vault memory vault, Standard standard) private view returns (uint64) {
        return vault.amount - _withdrawnOf(vault.vaultId, standard);
    }

    /// @dev Needs the owner's signature, one of a key with a session in force at the commit, or
    /// an approval before it. The owner has not cancelled the list before it, nor has a key on
    /// whose session the record rests: nobody else has a say. No wallet contract is asked now: by
    /// another answer, a previous owner could undo the record.
    function _isAuthorized(
        Vault memory vault,
        uint256 depth,
        Hops.Hop memory hop,
        bytes32 domain
    ) private view returns (bool) {
        address owner = vault.owner;
        if (owner == address(0)) return false;
        bytes32 digest = MessageHashUtils.toTypedDataHash(
            domain,
            Messages.transfers(hop.list, hop.deadline)
        );
        uint64 committedAt = hop.committedAt;
        Approval storage own = _approvals[owner][digest];
        (uint64 approvedAt, uint64 cancelledAt) = (own.approvedAt, own.cancelledAt);
        // All times are strictly earlier. Otherwise the answer could change within the second of
        // the commit.
        if (cancelledAt != 0 && cancelledAt < committedAt) return false;
        address signer = Signatures.signerOfCompact(digest, hop.r, hop.vs);
        if (signer == owner || (approvedAt != 0 && approvedAt < committedAt)) return true;
        if (signer == address(0)) return false;
        cancelledAt = _approvals[signer][digest].cancelledAt;
        if (cancelledAt != 0 && cancelledAt < committedAt) return false;
        if (hop.amount != 0 && depth >= MAX_SESSION_CHANGE_HOPS) return false;
        return _covers(_sessions[owner][signer], vault, hop.amount, committedAt);
    }

    function _covers(
        Session storage known,
        Vault memory vault,
        uint64 amount,
        uint64 committedAt
    ) private view returns (bool) {
        (uint64 from, uint64 until, uint64 revokedAt, uint64 limit, uint256 assetType) = (
            known.authorizedAt,
            known.until,
            known.revokedAt,
            known.limit,
            known.assetType
        );
        if (from == 0 || from >= committedAt || until < committedAt) return false;
        if (revokedAt != 0 && revokedAt < committedAt) return false;
        // The full amount and not the rest, which can shrink: then a record would count that did
        // not.
        uint64 units = amount == 0 ? vault.amount : amount;
        return units <= limit && (assetType == 0 || assetType == vault.assetType);
    }

    function _domain() internal view override returns (bytes32) {
        return _computedDomain();
    }
}
