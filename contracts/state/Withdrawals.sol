// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {ITransfers} from "../interfaces/ITransfers.sol";
import {IWithdrawals} from "../interfaces/IWithdrawals.sol";
import {
    BatchHeader,
    TRANSFERABLE,
    Vault,
    VaultPath,
    WithdrawalGroup,
    WithdrawalTerms,
    checkedDelay
} from "../interfaces/Model.sol";
import {Messages} from "../libraries/Messages.sol";
import {PackedItems} from "../libraries/PackedItems.sol";
import {StateProof} from "../libraries/StateProof.sol";
import {OwnerSignatures} from "./OwnerSignatures.sol";
import {Payouts} from "./Payouts.sol";
import {OwnTypedData} from "./TypedData.sol";

/// @title Withdrawals: a proof of a vault and its owner's word mint the token. No role, no pause,
/// no operator.
///
/// @notice The way of a withdrawal, of {withdraw} as of each item of {withdrawBatch}:
///
///   1. The terms of batch and asset ({Payouts-_terms}): the header is the stored one, the asset is
///      of this chain and older than the batch, an ERC-721 has matured, and the asset's path leads
///      to a root of the manifest. A group of items has them once.
///   2. The proof ({VaultProofs-_requireProven}): L1 makes the vault's words. A path of siblings
///      must lead from their hash to the batch root, or openings must show them in the blobs.
///   3. The vault must be one that the token can mint, and not spent by a transfer.
///   4. The amount is taken off the vault ({Payouts-_pay}), before any other contract is called.
///   5. The owner calls, or has signed a list with this vault.
///   6. The token mints. If it refuses, all of it is undone.
///
/// {withdrawBatch} checks each list once, and calls itself for each item, with a gas limit. So an
/// item that fails changes nothing, and costs the others nothing.
abstract contract Withdrawals is Payouts, OwnerSignatures, OwnTypedData, IWithdrawals {
    /// @dev Offset of a list in the calldata; 0 and a reason when the list is invalid.
    struct Checked {
        uint256 place;
        /// @dev {PackedItems-HAS_CANCELLED}, or 0.
        uint256 cancelled;
        bytes fault;
    }

    /// @dev How far a batch of withdrawals is.
    struct Progress {
        uint256 itemGas;
        Checked[] lists;
        uint256 index;
        uint256 failed;
        PackedItems.Word word;
    }

    /// @dev Least gas of one item of a batch: proof and token call together. So no caller can make
    /// an item fail by a lack of gas. The ten openings of the longest minting blob in blobs take
    /// most of it.
    uint64 private constant MIN_ITEM_GAS = 650_000;

    /// @inheritdoc IWithdrawals
    uint64 public immutable maturity;

    constructor(uint64 maturity_) {
        maturity = checkedDelay(maturity_);
    }

    /// @inheritdoc IWithdrawals
    function withdraw(
        Vault calldata vault,
        BatchHeader calldata header,
        VaultPath calldata path,
        uint64 quantity,
        address recipient
    ) external nonReentrant {
        Vault memory held = StateProof.load(vault);
        WithdrawalTerms memory terms = _terms(
            held.vaultId,
            held.chainId,
            held.assetType,
            header,
            path.assetIndex,
            path.assetSiblings,
            maturity
        );
        _withdraw(terms, held, path.siblings, quantity, recipient, uint160(msg.sender));
    }

    /// @inheritdoc IWithdrawals
    function withdrawBatch(
        WithdrawalGroup[] calldata groups,
        bytes[] calldata lists,
        uint64 itemGas
    ) external nonReentrant returns (uint256 failed) {
        if (itemGas < MIN_ITEM_GAS) revert ItemGasTooLow(itemGas);
        Progress memory progress;
        progress.itemGas = itemGas;
        progress.lists = _checkLists(lists, itemGas);
        for (uint256 i; i < groups.length; ++i) _withdrawGroup(groups[i], progress);
        return progress.failed;
    }

    /// @notice One item of {withdrawBatch}. Only this contract calls it, so that a failing item
    /// leaves no effect.
    /// @param by The caller of the batch, or the signer of the item's list, in the form of
    /// {PackedItems-Word}.
    function withdrawItem(
        WithdrawalTerms calldata terms,
        uint64 vaultId,
        uint256 assetType,
        uint256 by
    ) external {
        if (msg.sender != address(this)) revert NotSelf();
        (
            Vault memory vault,
            bytes32[] calldata siblings,
            uint64 quantity,
            address recipient
        ) = PackedItems.read(PackedItems.called(), vaultId, assetType);
        _withdraw(PackedItems.load(terms), vault, siblings, quantity, recipient, by);
    }

    /// @inheritdoc IWithdrawals
    function withdrawalTerms(
        uint64 vaultId,
        uint256 assetType,
        BatchHeader calldata header,
        uint8 assetIndex,
        bytes32[] calldata assetSiblings
    ) external view returns (WithdrawalTerms memory) {
        return
            _terms(
                vaultId,
                uint64(block.chainid),
                assetType,
                header,
                assetIndex,
                assetSiblings,
                maturity
            );
    }

    /// @inheritdoc IWithdrawals
    function checkList(bytes calldata list) external view {
        (
            address owner,
            address recipient,
            uint64 deadline,
            bytes calldata vaults,
            bytes calldata signature
        ) = PackedItems.readList(list);
        if (block.timestamp > deadline) revert AuthorizationExpired(deadline);
        bytes32 digest = _digestOf(Messages.withdrawalList(vaults, recipient, deadline));
        if (_cancelled[owner][ANY] && _cancelled[owner][digest])
            revert AuthorizationIsCancelled(digest);
        _requireSigned(owner, digest, signature);
    }

    function _withdrawGroup(WithdrawalGroup calldata group, Progress memory progress) private {
        uint64 firstVaultId = (uint64(group.mode) << 63) | (group.batchNumber << 20);
        // Set when the contract's call to itself succeeds.
        bool known;
        bytes memory terms;
        for (uint256 offset; offset < group.items.length; ++progress.index) {
            uint64 vaultId;
            bytes calldata item;
            (vaultId, item, offset) = PackedItems.next(group.items, offset);
            vaultId |= firstVaultId;
            _requireGas(progress.itemGas, progress.index);
            if (!known) (known, terms) = _askTerms(vaultId, group);
            uint64 tip = PackedItems.hasWay(item) ? PackedItems.tipOf(item) : vaultId;
            (bool done, bytes memory reason) = known
                ? _tryItem(terms, vaultId, tip, group.assetType, item, progress)
                : (false, terms);
            if (done) continue;
            ++progress.failed;
            emit WithdrawalFailed(tip, reason);
        }
    }

    /// @param vaultId The minted vault, which the group's batch has.
    /// @param tip The vault that is withdrawn.
    function _tryItem(
        bytes memory terms,
        uint64 vaultId,
        uint64 tip,
        uint256 assetType,
        bytes calldata item,
        Progress memory progress
    ) private returns (bool done, bytes memory reason) {
        PackedItems.Word memory word = progress.word;
        (word.by, word.list) = (uint160(msg.sender), 0);
        bytes calldata way = item[:0];
        bytes4 selector = this.withdrawItem.selector;
        uint256 itemGas = progress.itemGas;
        if (PackedItems.hasWay(item)) {
            (way, item) = PackedItems.split(item);
            selector = ITransfers.withdrawTransferredItem.selector;
            itemGas += WAY_GAS;
        }
        if (PackedItems.isListed(item)) {
            uint256 number = PackedItems.listOf(item);
            if (number >= progress.lists.length) revert PackedItems.ListMalformed();
            Checked memory list = progress.lists[number];
            if (list.place == 0) return (false, list.fault);
            word.list = list.place;
            item = PackedItems.unlisted(item, word, tip);
            word.by |= list.cancelled;
        }
        bytes memory callData = PackedItems.callOf(
            selector,
            terms,
            vaultId,
            assetType,
            word,
            way,
            item
        );
        // Checked again, because the copy of a long item uses gas.
        _requireGas(itemGas, progress.index);
        done = _call(address(this), itemGas, callData);
        // Frees the memory for the next item.
        assembly ("memory-safe") {
            mstore(0x40, callData)
        }
        if (!done) reason = _reason(MAX_ITEM_REASON_BYTES);
    }

    /// @dev The vault is in memory, because the function reads it many times.
    function _withdraw(
        WithdrawalTerms memory terms,
        Vault memory vault,
        bytes32[] calldata siblings,
        uint64 quantity,
        address recipient,
        uint256 by
    ) private {
        uint64 vaultId = vault.vaultId;
        _requireAsked(vaultId, quantity, recipient);
        _requireVault(terms, vault, siblings);
        if (terms.flags & TRANSFERABLE != 0 && _isSpent(vaultId)) revert VaultSpent(vaultId);
        _pay(terms, vault, quantity, recipient, by);
    }

    /// @dev A call to this contract, so that an error of the group is reported for each of its
    /// items.
    function _askTerms(
        uint64 vaultId,
        WithdrawalGroup calldata group
    ) private view returns (bool, bytes memory) {
        return
            address(this).staticcall(
                abi.encodeCall(
                    this.withdrawalTerms,
                    (vaultId, group.assetType, group.header, group.assetIndex, group.assetSiblings)
                )
            );
    }

    /// @dev Each list is checked by a call with an item's gas, so that a misbehaving wallet
    /// contract costs no more than an item.
    function _checkLists(
        bytes[] calldata lists,
        uint256 itemGas
    ) private returns (Checked[] memory found) {
        found = new Checked[](lists.length);
        for (uint256 i; i < lists.length; ++i) {
            bytes calldata list = lists[i];
            bytes memory callData = abi.encodeCall(this.checkList, (list));
            _requireGas(itemGas, 0);
            if (!_call(address(this), itemGas, callData))
                found[i].fault = _reason(MAX_ITEM_REASON_BYTES);
            else {
                found[i].place = PackedItems.placeOf(list);
                if (_cancelled[PackedItems.ownerOf(list)][ANY])
                    found[i].cancelled = PackedItems.HAS_CANCELLED;
            }
        }
    }
}
