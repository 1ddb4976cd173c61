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
    /// @dev How far a batch of withdrawals is.
    struct Progress {
        uint256 itemGas;
        /// @dev Each valid list's offset in the calldata, and {PackedItems-HAS_CANCELLED} if its
        /// signer has cancelled something. An invalid list has {INVALID}, and the place of its
        /// error in memory.
        uint256[] lists;
        uint256 index;
        uint256 failed;
    }

    /// @dev Least gas of one item of a batch: proof and token call together. So no caller can make
    /// an item fail by a lack of gas. The ten openings of the longest minting blob in blobs take
    /// most of it.
    uint64 private constant MIN_ITEM_GAS = 650_000;
    uint256 private constant INVALID = 1 << 255;

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
        Progress memory progress = Progress(itemGas, _checkLists(lists, itemGas), 0, 0);
        for (uint256 i; i < groups.length; ++i) _withdrawGroup(groups[i], progress);
        return progress.failed;
    }

    /// @notice One item of {withdrawBatch}. Only this contract calls it, so that a failing item
    /// leaves no effect.
    /// @param by The caller of the batch, or the signer of the item's list, in the form of
    /// {PackedItems-LISTED}.
    function withdrawItem(
        WithdrawalTerms calldata terms,
        uint64 vaultId,
        uint256 assetType,
        uint256 by
    ) external {
        if (msg.sender != address(this)) revert NotSelf();
        (
            address owner,
            uint64 amount,
            bytes memory mintingBlob,
            bytes32[] calldata siblings,
            uint64 quantity,
            address recipient
        ) = PackedItems.read(PackedItems.called(), vaultId);
        _withdraw(
            PackedItems.load(terms),
            Vault(vaultId, uint64(block.chainid), owner, assetType, amount, mintingBlob),
            siblings,
            quantity,
            recipient,
            by
        );
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
        (, bytes memory fault) = _check(list, gasleft());
        _revertWith(fault);
    }

    function _withdrawGroup(WithdrawalGroup calldata group, Progress memory progress) private {
        uint64 firstVaultId = (uint64(group.mode) << 63) | (group.batchNumber << 20);
        uint256 assetType = group.assetType;
        bytes calldata items = group.items;
        WithdrawalTerms memory terms;
        // Set when the terms are. Their error names the vault, so each vault has its own.
        bool known;
        for (uint256 offset; offset < items.length; ++progress.index) {
            uint64 vaultId;
            bytes calldata item;
            (vaultId, item, offset) = PackedItems.next(items, offset);
            vaultId |= firstVaultId;
            _requireGas(progress.itemGas, progress.index);
            bytes memory reason;
            if (!known) {
                reason = _fillTerms(
                    terms,
                    vaultId,
                    uint64(block.chainid),
                    assetType,
                    group.header,
                    group.assetIndex,
                    group.assetSiblings,
                    maturity
                );
                known = reason.length == 0;
            }
            uint64 tip = PackedItems.hasWay(item) ? PackedItems.tipOf(item) : vaultId;
            bool done;
            if (known) (done, reason) = _tryItem(progress, terms, vaultId, tip, assetType, item);
            if (done) continue;
            ++progress.failed;
            emit WithdrawalFailed(tip, reason);
        }
    }

    /// @param vaultId The minted vault, which the group's batch has.
    /// @param tip The vault that is withdrawn.
    function _tryItem(
        Progress memory progress,
        WithdrawalTerms memory terms,
        uint64 vaultId,
        uint64 tip,
        uint256 assetType,
        bytes calldata item
    ) private returns (bool done, bytes memory reason) {
        uint256 by = uint160(msg.sender);
        uint256 list;
        uint256 amounts;
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
            list = progress.lists[number];
            if (list & INVALID != 0) return (false, _errorAt(list ^ INVALID));
            uint256 cancelled = list & PackedItems.HAS_CANCELLED;
            list ^= cancelled;
            (item, by, amounts) = PackedItems.unlisted(item, list, tip);
            by |= cancelled;
        }
        bytes memory callData = PackedItems.callOf(
            selector,
            terms,
            vaultId,
            assetType,
            by,
            list,
            amounts,
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

    /// @dev The wallet of a list's owner gets an item's gas, so that a misbehaving one costs no
    /// more than an item.
    function _checkLists(
        bytes[] calldata lists,
        uint256 itemGas
    ) private view returns (uint256[] memory found) {
        found = new uint256[](lists.length);
        for (uint256 i; i < lists.length; ++i) {
            _requireGas(itemGas, 0);
            (uint256 word, bytes memory fault) = _check(lists[i], itemGas);
            if (fault.length != 0) word = INVALID | _placeOfError(fault);
            found[i] = word;
        }
    }

    /// @param gas_ Most gas of the owner's wallet.
    /// @return word A valid list's word in {Progress-lists}.
    /// @return fault The error of an invalid list.
    function _check(
        bytes calldata list,
        uint256 gas_
    ) private view returns (uint256 word, bytes memory fault) {
        (
            bool complete,
            address owner,
            address recipient,
            uint64 deadline,
            bytes calldata vaults,
            bytes calldata signature
        ) = PackedItems.partsOf(list);
        if (!complete) return (0, abi.encodeWithSelector(PackedItems.ListMalformed.selector));
        if (block.timestamp > deadline)
            return (0, abi.encodeWithSelector(AuthorizationExpired.selector, deadline));
        bytes32 digest = _digestOf(Messages.withdrawalList(vaults, recipient, deadline));
        word = PackedItems.placeOf(list);
        if (_cancelled[owner][ANY]) {
            if (_cancelled[owner][digest])
                return (0, abi.encodeWithSelector(AuthorizationIsCancelled.selector, digest));
            word |= PackedItems.HAS_CANCELLED;
        }
        if (!_signed(owner, digest, signature, gas_))
            fault = abi.encodeWithSelector(SignatureInvalid.selector, digest);
    }

    function _placeOfError(bytes memory fault) private pure returns (uint256 place) {
        assembly ("memory-safe") {
            place := fault
        }
    }

    function _errorAt(uint256 place) private pure returns (bytes memory fault) {
        assembly ("memory-safe") {
            fault := place
        }
    }
}
