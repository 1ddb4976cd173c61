// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {MessageHashUtils} from "@openzeppelin/contracts/utils/cryptography/MessageHashUtils.sol";
import {ITransfers} from "../interfaces/ITransfers.sol";
import {IWithdrawals} from "../interfaces/IWithdrawals.sol";
import {Standard, TRANSFERABLE, Vault, WithdrawalTerms} from "../interfaces/Model.sol";
import {Hops} from "../libraries/Hops.sol";
import {Messages} from "../libraries/Messages.sol";
import {Signatures} from "../libraries/Signatures.sol";
import {Payouts} from "./Payouts.sol";
import {SettlementState} from "./SettlementState.sol";
import {TypedData} from "./TypedData.sol";

/// @title Which vault a chain of committed records has made of another, and whether it is spent.
/// @dev Whether a record counts depends on nothing that the caller chooses. The answer never
/// changes from no to yes, and from yes to no only when the mint is voided as a duplicate. That
/// takes nothing from an owner whom the token has paid before.
abstract contract Tips is SettlementState, Payouts, TypedData {
    /// @dev Most records between a mint and an exit. Otherwise a vault could be split again and
    /// again, until no block has the gas for the exit. A vault has one chain, so this depends on no
    /// caller.
    uint256 private constant MAX_HOPS = 8;
    /// @dev Most records between a mint and the change that a session's key leaves. Otherwise the
    /// key could give away single units, until the owner can give away nothing.
    uint256 private constant MAX_SESSION_CHANGE_HOPS = 4;

    /// @dev The vault that a chain of records has made of a minted one. Reverts unless each record
    /// counts, and when a record that counts, or that nobody has refuted, spends the tip.
    function _tipOf(
        WithdrawalTerms memory terms,
        Vault memory tip,
        bytes32[] calldata siblings,
        bytes calldata hops,
        bytes calldata refutation
    ) internal view returns (Vault memory) {
        if (terms.flags & TRANSFERABLE == 0) revert ITransfers.NotTransferable(tip.assetType);
        _requireVault(terms, tip, siblings);
        bytes32 domain = _domain();
        uint256 depth;
        for (uint256 offset; offset < hops.length; ++depth) {
            Hops.Hop memory hop;
            (hop, offset) = _recordAt(hops, offset, tip.vaultId);
            uint64 rest = _restOf(tip, terms.standard);
            if (!_counts(tip, terms.standard, rest, depth, hop, domain))
                revert ITransfers.TransferInvalid(tip.vaultId);
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

    function _restOf(Vault memory vault, Standard standard) internal view returns (uint64) {
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
}
