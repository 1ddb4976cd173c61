// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {IMakings} from "../interfaces/IMakings.sol";
import {ITransfers} from "../interfaces/ITransfers.sol";
import {IWithdrawals} from "../interfaces/IWithdrawals.sol";
import {
    ENTERED,
    MADE,
    Mode,
    Standard,
    TRANSFERABLE,
    Vault,
    WithdrawalGroup,
    WithdrawalTerms
} from "../interfaces/Model.sol";
import {LeafTree} from "../libraries/LeafTree.sol";
import {Manifest} from "../libraries/Manifest.sol";
import {Messages} from "../libraries/Messages.sol";
import {MintingBlob} from "../libraries/MintingBlob.sol";
import {PackedItems} from "../libraries/PackedItems.sol";
import {StateProof} from "../libraries/StateProof.sol";
import {VaultWords} from "../libraries/VaultWords.sol";
import {OwnerSignatures} from "./OwnerSignatures.sol";
import {Roles} from "./Roles.sol";
import {Tips} from "./Tips.sol";

/// @title The vaults that L1 makes by itself, in a series beside the operator's batches.
///
/// @notice The way of a token from L1 into a vault, and out again:
///
///   1. The holder calls the token's `enter`. The token burns what the holder gives, and calls
///      {make}. Each commit names the history before it, so nothing that a stranger does may be
///      part of the history: a making is not.
///   2. L1 takes the next number, makes the vault's words, and keeps the making's header where the
///      headers of batches are.
///   3. An ERC-721 id keeps the number too. Vaults that are older than its latest entry never count
///      again ({VaultProofs-_requireCounted}).
///   4. The vault exits as every vault does, or is given away by records of {Transfers}.
///
/// Vaults become others by {renew}: it checks all that a withdrawal checks, takes what the owner's
/// list says, and makes vaults of it in place of tokens.
///
/// The settlement contract runs this code on its own storage. It has no state of its own, no
/// constructor and no immutable value, so each deployment of it has the same code.
contract Makings is Roles, Tips, OwnerSignatures, IMakings {
    /// @dev How far a renewal is.
    struct Renewal {
        address owner;
        address recipient;
        uint64 maturity;
        /// @dev One bit for each entry of the list that is taken.
        uint256 taken;
        PackedItems.Word word;
        /// @dev The vaults to make, and what tells two of them apart.
        Vault[] vaults;
        bytes32[] keys;
        uint256 count;
    }

    /// @dev A vault of more units has no words.
    uint256 private constant MAX_UNITS = uint64(type(int64).max);
    /// @dev The memory around a tree's leaves that {LeafTree-fold} overwrites.
    uint256 private constant ROOM_BEFORE = 0x100;
    uint256 private constant ROOM_BEHIND = 0x140;

    /// @inheritdoc IMakings
    function make(
        uint256 assetType,
        address owner,
        uint256 amount,
        bytes calldata blob
    ) external nonReentrant returns (uint64 vaultId) {
        Asset storage asset = _assets[uint64(block.chainid)][assetType];
        if (asset.token != msg.sender) revert NotToken(assetType, msg.sender);
        (Standard standard, uint256 quantum) = (asset.standard, asset.quantum);
        if (amount % quantum != 0) revert AmountIndivisible(amount, quantum);
        uint256 units = amount / quantum;
        if (owner == address(0) || units > MAX_UNITS) revert VaultUnpayable(owner, amount, blob);
        uint64 making = uint64(_head >> MAKINGS) + 1;
        vaultId = MADE | (making << 20);
        Vault memory vault = Vault(
            vaultId,
            uint64(block.chainid),
            owner,
            assetType,
            uint64(units),
            blob
        );
        _requirePayable(vault, standard, asset.scheme);
        (uint256 head, bytes memory continuations) = VaultWords.wordsOf(vault, 0);
        if (head == 0) revert VaultUnpayable(owner, amount, blob);
        emit VaultMade(vaultId, owner, assetType, uint64(units), blob);
        if (standard != Standard.ERC20) {
            // The token can mint only what its scheme spells, whatever its standard.
            uint256 tokenId = MintingBlob.idOf(asset.scheme, vault.blob);
            if (standard == Standard.ERC721) _enter(asset, assetType, tokenId, making);
        }
        // One leaf is the whole vault tree, and one asset the whole manifest.
        _keep(
            making,
            Manifest.leaf(uint64(block.chainid), assetType),
            VaultWords.leaf(vaultId, head, continuations),
            1
        );
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
        making = uint64(_head >> MAKINGS) + 1;
        _makeAll(making, renewal.vaults, renewal.count);
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
            renewal.word.by = PackedItems.HAS_CANCELLED;
        }
        _requireBy(owner, message, signature);
        renewal.owner = owner;
        renewal.recipient = recipient;
        renewal.maturity = IWithdrawals(address(this)).maturity();
        renewal.word.list = PackedItems.placeOf(list);
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
        for (uint256 offset; offset < group.items.length;) {
            uint64 slot;
            bytes calldata item;
            (slot, item, offset) = PackedItems.next(group.items, offset);
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
        PackedItems.Word memory word = renewal.word;
        Vault memory vault;
        vault.vaultId = vaultId;
        vault.chainId = uint64(block.chainid);
        vault.owner = renewal.owner;
        vault.assetType = assetType;
        uint64 tipId = vaultId;
        bytes calldata hops = item[:0];
        bytes calldata refutation = item[:0];
        bool hasWay = PackedItems.hasWay(item);
        if (hasWay) {
            tipId = PackedItems.tipOf(item);
            (vault.owner, hops, refutation, item) = PackedItems.wayOf(item);
        }
        uint256 position = 1 << PackedItems.positionOf(item);
        if (renewal.taken & position != 0) revert RenewalIncomplete();
        renewal.taken |= position;
        uint256 cancelled = word.by & PackedItems.HAS_CANCELLED;
        bytes calldata body = PackedItems.unlisted(item, word, tipId);
        word.by |= cancelled;
        vault.amount = uint64(word.amounts >> 64);
        uint64 quantity = uint64(word.amounts);
        bytes32[] calldata siblings;
        (vault.blob, siblings) = PackedItems.bodyOf(body, 0, vaultId);
        _requireAsked(tipId, quantity, renewal.recipient);
        if (hasWay) {
            vault = _tipOf(terms, vault, siblings, hops, refutation);
            if (vault.vaultId != tipId) revert PackedItems.ItemMalformed(vault.vaultId);
        } else {
            _requireVault(terms, vault, siblings);
            if (terms.flags & TRANSFERABLE != 0 && _isSpent(vaultId))
                revert IWithdrawals.VaultSpent(vaultId);
        }
        _consume(terms.standard, vault, quantity, address(this), word.by);
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
            isUnique ? MintingBlob.idOf(terms.scheme, vault.blob) : uint256(keccak256(vault.blob));
        bytes32 key = keccak256(abi.encode(vault.assetType, text));
        uint256 count = renewal.count;
        for (uint256 i; i < count; ++i) {
            if (renewal.keys[i] != key) continue;
            if (isUnique) revert TokenTwice(vault.vaultId);
            Vault memory known = renewal.vaults[i];
            uint256 sum = uint256(known.amount) + quantity;
            if (sum > MAX_UNITS) revert VaultUnpayable(renewal.recipient, sum, vault.blob);
            known.amount = uint64(sum);
            return;
        }
        renewal.keys[count] = key;
        renewal.vaults[count] = vault;
        renewal.count = count + 1;
        vault.owner = renewal.recipient;
        vault.amount = quantity;
    }

    /// @dev Makes the first `count` of these vaults, at most 256. The assets of the making stand in
    /// the order in which they come first.
    function _makeAll(uint64 making, Vault[] memory vaults, uint256 count) private {
        uint256[] memory assets = new uint256[](count);
        uint256 known;
        uint256 leaves = _room(count);
        for (uint256 slot; slot < count; ++slot) {
            Vault memory vault = vaults[slot];
            uint64 vaultId = MADE | (making << 20) | uint64(slot);
            uint256 index;
            while (index < known && assets[index] != vault.assetType) ++index;
            if (index == known) assets[known++] = vault.assetType;
            (uint256 head, bytes memory continuations) = VaultWords.wordsOf(vault, index);
            if (head == 0 || index == Manifest.MAX_ASSETS)
                revert VaultUnpayable(vault.owner, vault.amount, vault.blob);
            _put(leaves, slot, VaultWords.leaf(vaultId, head, continuations));
            emit VaultMade(vaultId, vault.owner, vault.assetType, vault.amount, vault.blob);
        }
        bytes32 content = LeafTree.fold(leaves, count);
        for (uint256 i; i < known; ++i)
            _put(leaves, i, Manifest.leaf(uint64(block.chainid), assets[i]));
        _keep(making, LeafTree.fold(leaves, known), content, uint32(count));
    }

    /// @dev Allocates memory for leaves, with the room that {LeafTree-fold} needs.
    function _room(uint256 count) private pure returns (uint256 leaves) {
        assembly ("memory-safe") {
            leaves := add(mload(0x40), ROOM_BEFORE)
            mstore(0x40, add(add(leaves, shl(5, count)), ROOM_BEHIND))
        }
    }

    function _put(uint256 leaves, uint256 index, bytes32 leaf) private pure {
        assembly ("memory-safe") {
            mstore(add(leaves, shl(5, index)), leaf)
        }
    }

    function _enter(
        Asset storage asset,
        uint256 assetType,
        uint256 tokenId,
        uint64 making
    ) private {
        _entries[assetType][tokenId] = making;
        if (asset.flags & ENTERED == 0) asset.flags |= ENTERED;
        emit TokenEntered(assetType, tokenId, making);
    }

    /// @dev Stores a making's header. It has the kind of a validium batch, whose numbers are far
    /// below those of makings. It holds no time, so an ERC-721 is mature at once: L1 has checked
    /// that no other vault of the id counts.
    function _keep(
        uint64 making,
        bytes32 manifestRoot,
        bytes32 content,
        uint32 vaultCount
    ) private {
        uint256 head = _head;
        uint64 sequence = uint64(head >> SEQUENCE);
        bytes32 batchRoot = Manifest.batchRoot(uint8(Mode.Validium), manifestRoot, content);
        _headers[Mode.Validium][(MADE >> 20) | making] = StateProof.headerHash(
            batchRoot,
            vaultCount,
            0,
            sequence
        );
        _head = head + (1 << MAKINGS);
        emit Made(making, batchRoot, vaultCount, sequence);
    }

    function _domain() internal view override returns (bytes32) {
        return _computedDomain();
    }
}
