// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {MessageHashUtils} from "@openzeppelin/contracts/utils/cryptography/MessageHashUtils.sol";
import {ITransfers} from "../interfaces/ITransfers.sol";
import {IVaultProofs} from "../interfaces/IVaultProofs.sol";
import {IWithdrawals} from "../interfaces/IWithdrawals.sol";
import {
    Authorization, BatchHeader, Hop, Mode, Standard, Transfer, Vault, VaultPath, WithdrawalTerms
} from "../interfaces/Model.sol";
import {Messages} from "../libraries/Messages.sol";
import {Signatures} from "../libraries/Signatures.sol";
import {StateProof} from "../libraries/StateProof.sol";
import {TransferData} from "../libraries/TransferData.sol";
import {Appending} from "./Appending.sol";
import {Payouts} from "./Payouts.sol";

/// @title The commits of transfers, which committed records count, and the exit of those who own a vault by them.
/// @notice The settlement contract runs this code on its own storage. It has no state of its own, no constructor and no
/// immutable value, so each deployment of it has the same code.
/// @dev Whether a record counts depends on nothing that the caller chooses. The answer never changes from no to yes, and
/// from yes to no only when the vault is voided as a duplicate.
contract Transfers is Appending, Payouts, ITransfers {
    uint256 private constant SLOT_MASK = 0xfffff;
    /// @dev Most records between a mint and an exit. Otherwise the key of a session could split a vault again and again,
    /// until no block has the gas for the exit. A vault has one chain, so this depends on no caller.
    uint256 private constant MAX_HOPS = 8;
    bytes32 private constant DOMAIN_TYPEHASH =
        keccak256("EIP712Domain(string name,string version,uint256 chainId,address verifyingContract)");

    /// @inheritdoc ITransfers
    function commitTransferBatch(bytes32 previous, uint64 batchNumber, bytes calldata data, bytes calldata attestation) external {
        _requirePlainAccount();
        uint256 head = _beforeCommit(previous, Mode.ZkRollup, batchNumber);
        bytes32 dataHash = TransferData.hashOf(data);
        (bytes32 content, uint256 count) = TransferData.spend(data, (1 << 63) | (batchNumber << 20), _spent);
        bytes32 batchRoot = TransferData.batchRoot(content);
        uint64 epoch = uint64(head >> EPOCH);
        _checkAttestation(
            Messages.transferBatch(previous, batchNumber, batchRoot, uint32(count), dataHash, epoch), epoch, attestation
        );
        emit TransfersCommitted(batchNumber);
        _append(head, previous, Mode.ZkRollup, batchNumber, batchRoot, uint32(count), dataHash);
    }

    /// @inheritdoc ITransfers
    function withdrawTransferred(
        Vault calldata origin,
        BatchHeader calldata header,
        VaultPath calldata path,
        Hop[] calldata hops,
        Hop[] calldata refutation,
        uint64 quantity,
        address recipient,
        Authorization calldata authorization
    ) external nonReentrant {
        // This code has no constructor that could keep the maturity. The settlement contract answers itself.
        uint64 maturity = IWithdrawals(address(this)).maturity();
        (WithdrawalTerms memory terms, Vault memory tip) = _tipOf(origin, header, path, hops, refutation, maturity);
        _requireAsked(tip.vaultId, quantity, recipient);
        _pay(terms, tip, quantity, recipient, authorization.deadline, authorization.signature, uint160(msg.sender));
    }

    /// @inheritdoc ITransfers
    function verifyTransferred(
        Vault calldata origin,
        BatchHeader calldata header,
        VaultPath calldata path,
        Hop[] calldata hops,
        Hop[] calldata refutation
    ) external view returns (address owner, uint64 amount) {
        (WithdrawalTerms memory terms, Vault memory tip) = _tipOf(origin, header, path, hops, refutation, 0);
        return (tip.owner, _restOf(tip, terms.standard));
    }

    /// @inheritdoc ITransfers
    function approveTransfers(Transfer[] calldata transfers, uint64 deadline) external {
        bytes32 digest = _digestOf(Messages.transfers(TransferData.listOf(transfers), deadline));
        // Only the first time counts, so that no record that counts by it ever stops to count.
        if (_approvedAt[msg.sender][digest] != 0) return;
        _approvedAt[msg.sender][digest] = uint64(block.timestamp);
        emit TransfersApproved(msg.sender, digest, uint64(block.timestamp));
    }

    /// @inheritdoc ITransfers
    function authorizeSession(address owner, address key, uint64 until, uint64 limit, uint256 assetType, bytes calldata signature)
        external
    {
        if (key == address(0) || limit == 0 || until <= block.timestamp) revert SessionInvalid();
        Session storage known = _sessions[owner][key];
        if (known.authorizedAt != 0 || known.revokedAt != 0) revert SessionKeyUsed(owner, key);
        if (signature.length != 0) {
            bytes32 digest = _digestOf(Messages.session(owner, key, until, limit, assetType));
            if (!_signed(owner, digest, signature, gasleft())) revert IWithdrawals.SignatureInvalid(digest);
        } else if (msg.sender != owner) {
            revert IWithdrawals.SignatureInvalid(0);
        }
        uint64 now_ = uint64(block.timestamp);
        _sessions[owner][key] = Session(now_, until, 0, limit, assetType);
        emit SessionAuthorized(owner, key, until, limit, assetType, now_);
    }

    /// @inheritdoc ITransfers
    function revokeSession(address key) external {
        Session storage known = _sessions[msg.sender][key];
        // Only the first time counts: a later one would let records count that did not.
        if (known.revokedAt != 0) return;
        known.revokedAt = uint64(block.timestamp);
        emit SessionRevoked(msg.sender, key, uint64(block.timestamp));
    }

    /// @inheritdoc ITransfers
    function session(address owner, address key)
        external
        view
        returns (uint64 authorizedAt, uint64 until, uint64 revokedAt, uint64 limit, uint256 assetType)
    {
        Session storage known = _sessions[owner][key];
        return (known.authorizedAt, known.until, known.revokedAt, known.limit, known.assetType);
    }

    /// @inheritdoc ITransfers
    function approvedAt(address owner, bytes32 digest) external view returns (uint64) {
        return _approvedAt[owner][digest];
    }

    /// @inheritdoc ITransfers
    function isSpent(uint64 vaultId) external view returns (bool) {
        return _isSpent(vaultId);
    }

    /// @dev The vault that a chain of records has made of a minted one, and its terms. Reverts unless each record counts,
    /// and when a record that counts, or that nobody has refuted, spends the tip.
    function _tipOf(
        Vault calldata origin,
        BatchHeader calldata header,
        VaultPath calldata path,
        Hop[] calldata hops,
        Hop[] calldata refutation,
        uint64 maturity
    ) private view returns (WithdrawalTerms memory terms, Vault memory tip) {
        terms = _terms(
            origin.vaultId, origin.chainId, origin.assetType, header, path.assetIndex, path.assetSiblings, maturity
        );
        if (!terms.transferable) revert NotTransferable(origin.assetType);
        tip = origin;
        _requireVault(terms, tip, path.siblings);
        uint64 sequence = header.sequence;
        for (uint256 i; i < hops.length; ++i) {
            if (!_counts(tip, terms.standard, sequence, i, hops[i])) revert TransferInvalid(tip.vaultId);
            sequence = hops[i].header.sequence;
            _advance(tip, terms.standard, hops[i]);
        }
        bool isRefuted = refutation.length == 1 && !_counts(tip, terms.standard, sequence, hops.length, refutation[0]);
        if (_isSpent(tip.vaultId) && !isRefuted) revert IWithdrawals.VaultSpent(tip.vaultId);
    }

    /// @dev Whether a committed record moves the vault. Reverts unless it is a committed record of this vault, so that
    /// no made-up record can be refuted in place of the one that is there. A vault has at most one.
    /// @param sequence Of the batch that made the vault.
    /// @param depth The records between the mint and the vault.
    function _counts(Vault memory vault, Standard standard, uint64 sequence, uint256 depth, Hop calldata hop)
        private
        view
        returns (bool)
    {
        _requireRecord(vault.vaultId, hop);
        if (depth >= MAX_HOPS) return false;
        // A batch's records spend what earlier batches have made.
        if (hop.header.sequence <= sequence || hop.header.committedAt > hop.deadline) return false;
        uint64 rest = _restOf(vault, standard);
        // The whole rest has one spelling, zero, which stays right when the rest shrinks before the commit.
        if (rest == 0 || (hop.amount != 0 && (standard == Standard.ERC721 || hop.amount >= rest))) return false;
        return _isAuthorized(vault, hop);
    }

    /// @dev Makes the vault the one that a record which counts has made of it.
    function _advance(Vault memory vault, Standard standard, Hop calldata hop) private view {
        uint64 rest = _restOf(vault, standard);
        uint64 paid = hop.amount == 0 ? rest : hop.amount;
        // The other part is the change, which stays with the owner.
        if (hop.part == 0) (vault.owner, vault.amount) = (hop.to, paid);
        else vault.amount = rest - paid;
        vault.vaultId = hop.outId;
    }

    function _restOf(Vault memory vault, Standard standard) private view returns (uint64) {
        return vault.amount - _withdrawnOf(vault.vaultId, standard);
    }

    /// @dev Only this contract hashes the leaves of a transfer batch, whose root has a kind of its own. So each leaf is
    /// a record that has set the bit of its vault.
    function _requireRecord(uint64 inId, Hop calldata hop) private view {
        uint64 outId = hop.outId;
        _requireHeader(outId, hop.header);
        uint256 slot = outId & SLOT_MASK;
        uint256 count = hop.header.vaultCount;
        bytes32 auth = TransferData.authOf(hop.deadline, hop.list, hop.signature);
        bytes32 leaf = TransferData.leafOf(outId, hop.part, inId, hop.amount, hop.to, auth);
        bool proven = slot < count && StateProof.isHeight(hop.siblings.length, count)
            && TransferData.batchRoot(StateProof.fold(leaf, slot, hop.siblings)) == hop.header.batchRoot;
        if (!proven) revert IVaultProofs.ProofInvalid(outId);
    }

    /// @dev By the owner's signature, by one of a key with a session in force at the commit, or by an approval before
    /// it. No wallet contract is asked now: by another answer, a previous owner could undo the record.
    function _isAuthorized(Vault memory vault, Hop calldata hop) private view returns (bool) {
        address owner = vault.owner;
        if (owner == address(0)) return false;
        bytes32 digest = _digestOf(Messages.transfers(hop.list, hop.deadline));
        address signer = Signatures.signerOf(digest, hop.signature);
        if (signer == owner) return true;
        uint64 committedAt = hop.header.committedAt;
        // Strictly later: otherwise an approval could make a record count that was committed in the same second.
        uint64 approved = _approvedAt[owner][digest];
        if (approved != 0 && approved < committedAt) return true;
        return signer != address(0) && _covers(_sessions[owner][signer], vault, hop.amount, committedAt);
    }

    function _covers(Session storage known, Vault memory vault, uint64 amount, uint64 committedAt) private view returns (bool) {
        (uint64 from, uint64 until, uint64 revokedAt, uint64 limit, uint256 assetType) =
            (known.authorizedAt, known.until, known.revokedAt, known.limit, known.assetType);
        if (from == 0 || from >= committedAt || until < committedAt) return false;
        if (revokedAt != 0 && revokedAt < committedAt) return false;
        // The full amount and not the rest, which can shrink: then a record would count that did not.
        uint64 units = amount == 0 ? vault.amount : amount;
        return units <= limit && (assetType == 0 || assetType == vault.assetType);
    }

    /// @dev The domain of the contract that runs this code.
    function _digestOf(bytes32 message) internal view override returns (bytes32) {
        bytes32 domain =
            keccak256(abi.encode(DOMAIN_TYPEHASH, keccak256("Mintmark"), keccak256("1"), block.chainid, address(this)));
        return MessageHashUtils.toTypedDataHash(domain, message);
    }
}
