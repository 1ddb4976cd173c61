// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {IMakings} from "../interfaces/IMakings.sol";
import {ITransfers} from "../interfaces/ITransfers.sol";
import {IWithdrawals} from "../interfaces/IWithdrawals.sol";
import {
    Standard,
    TRANSFERABLE,
    Vault,
    WithdrawalGroup,
    WithdrawalTerms
} from "../interfaces/Model.sol";
import {Messages} from "../libraries/Messages.sol";
import {MintingBlob} from "../libraries/MintingBlob.sol";
import {PackedItems} from "../libraries/PackedItems.sol";
import {MadeVaults} from "./MadeVaults.sol";

/// @title One owner's vaults become others: all that a withdrawal checks, and vaults in place of
/// tokens.
abstract contract Renewals is MadeVaults {
    /// @dev How far a renewal is.
    struct Renewal {
        address owner;
        address recipient;
        uint64 maturity;
        /// @dev One bit for each entry of the list that is taken.
        uint256 taken;
        /// @dev Offset of the list in the calldata, and {PackedItems-HAS_CANCELLED} or 0.
        uint256 list;
        uint256 cancelled;
        /// @dev The vaults to make, and what tells two of them apart.
        Vault[] vaults;
        bytes32[] keys;
        uint256 count;
    }

    /// @inheritdoc IMakings
    function renew(
        WithdrawalGroup[] calldata groups,
        bytes calldata list
    ) external nonReentrant returns (uint64 making) {
        Renewal memory renewal;
        uint256 entries = _readList(renewal, list);
        for (uint256 i; i < groups.length; ++i) _takeGroup(renewal, groups[i]);
        if (renewal.taken != type(uint256).max >> (256 - entries)) revert RenewalIncomplete();
        // Behind every call of another contract, so that the number is still free.
        Making memory made = _begin(renewal.count);
        for (uint256 i; i < renewal.count; ++i) _add(made, renewal.vaults[i]);
        _end(made);
        return made.number;
    }

    /// @dev Reverts unless the list is valid now and its owner calls or has signed it.
    function _readList(Renewal memory renewal, bytes calldata list) private view returns (uint256) {
        (
            address owner,
            address recipient,
            uint64 deadline,
            bytes calldata vaults,
            bytes calldata signature
        ) = PackedItems.readList(list);
        if (block.timestamp > deadline) revert IWithdrawals.AuthorizationExpired(deadline);
        bytes32 message = Messages.renewalList(vaults, recipient, deadline);
        if (_cancelled[owner][ANY]) {
            bytes32 digest = _digestOf(message);
            if (_cancelled[owner][digest]) revert IWithdrawals.AuthorizationIsCancelled(digest);
            renewal.cancelled = PackedItems.HAS_CANCELLED;
        }
        _requireBy(owner, message, signature);
        renewal.owner = owner;
        renewal.recipient = recipient;
        renewal.maturity = IWithdrawals(address(this)).maturity();
        renewal.list = PackedItems.placeOf(list);
        uint256 entries = vaults.length / 24;
        renewal.vaults = new Vault[](entries);
        renewal.keys = new bytes32[](entries);
        return entries;
    }

    function _takeGroup(Renewal memory renewal, WithdrawalGroup calldata group) private {
        uint64 firstVaultId = (uint64(group.mode) << 63) | (group.batchNumber << 20);
        WithdrawalTerms memory terms = _terms(
            firstVaultId,
            uint64(block.chainid),
            group.assetType,
            group.header,
            group.assetIndex,
            group.assetSiblings,
            renewal.maturity
        );
        if (terms.flags & TRANSFERABLE == 0 && renewal.recipient != renewal.owner)
            revert ITransfers.NotTransferable(group.assetType);
        // Each look at a group's items would check their place in the calldata again.
        bytes calldata items = group.items;
        for (uint256 offset; offset < items.length;) {
            uint64 slot;
            bytes calldata item;
            (slot, item, offset) = PackedItems.next(items, offset);
            _takeItem(renewal, terms, firstVaultId | slot, group.assetType, item);
        }
    }

    function _takeItem(
        Renewal memory renewal,
        WithdrawalTerms memory terms,
        uint64 vaultId,
        uint256 assetType,
        bytes calldata item
    ) private {
        Vault memory vault;
        vault.vaultId = vaultId;
        vault.chainId = uint64(block.chainid);
        vault.owner = renewal.owner;
        vault.assetType = assetType;
        uint64 tipId = vaultId;
        bytes calldata listed = item;
        bool hasWay = PackedItems.hasWay(item);
        if (hasWay) {
            tipId = PackedItems.tipOf(item);
            (vault.owner, , , listed) = PackedItems.wayOf(item);
        }
        uint256 position = 1 << PackedItems.positionOf(listed);
        if (renewal.taken & position != 0) revert RenewalIncomplete();
        renewal.taken |= position;
        (bytes calldata body, uint256 by, uint256 amounts) = PackedItems.unlisted(
            listed,
            renewal.list,
            tipId
        );
        by |= renewal.cancelled;
        vault.amount = uint64(amounts >> 64);
        uint64 quantity = uint64(amounts);
        bytes32[] calldata siblings;
        (vault.mintingBlob, siblings) = PackedItems.bodyOf(body, 0, vaultId);
        _requireAsked(tipId, quantity, renewal.recipient);
        if (hasWay) {
            (, bytes calldata hops, bytes calldata refutation, ) = PackedItems.wayOf(item);
            vault = _tipOf(terms, vault, siblings, hops, refutation);
            if (vault.vaultId != tipId) revert PackedItems.ItemMalformed(vault.vaultId);
        } else {
            _requireVault(terms, vault, siblings);
            if (terms.flags & TRANSFERABLE != 0 && _isSpent(vaultId))
                revert IWithdrawals.VaultSpent(vaultId);
        }
        _consume(terms.standard, vault, quantity, address(this), by);
        _gather(renewal, terms, vault, quantity);
    }

    /// @dev Adds what was taken of a vault to the vaults to make.
    function _gather(
        Renewal memory renewal,
        WithdrawalTerms memory terms,
        Vault memory vault,
        uint64 quantity
    ) private pure {
        bool isUnique = terms.standard == Standard.ERC721;
        uint256 text =
            isUnique
                ? MintingBlob.idOf(terms.scheme, vault.mintingBlob)
                : uint256(keccak256(vault.mintingBlob));
        bytes32 key = keccak256(abi.encode(vault.assetType, text));
        uint256 count = renewal.count;
        for (uint256 i; i < count; ++i) {
            if (renewal.keys[i] != key) continue;
            if (isUnique) revert TokenTwice(vault.vaultId);
            Vault memory known = renewal.vaults[i];
            uint256 sum = uint256(known.amount) + quantity;
            if (sum > MAX_UNITS) revert VaultUnpayable(renewal.recipient, sum, vault.mintingBlob);
            known.amount = uint64(sum);
            return;
        }
        renewal.keys[count] = key;
        renewal.vaults[count] = vault;
        renewal.count = count + 1;
        vault.owner = renewal.recipient;
        vault.amount = quantity;
    }
}
