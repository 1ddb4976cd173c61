// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {IERC1271} from "@openzeppelin/contracts/interfaces/IERC1271.sol";
import {EIP712} from "@openzeppelin/contracts/utils/cryptography/EIP712.sol";
import {ReentrancyGuardTransient} from "@openzeppelin/contracts/utils/ReentrancyGuardTransient.sol";
import {IAssetRegistry} from "../interfaces/IAssetRegistry.sol";
import {IMintable} from "../interfaces/IMintable.sol";
import {IVaultProofs} from "../interfaces/IVaultProofs.sol";
import {IWithdrawals} from "../interfaces/IWithdrawals.sol";
import {
    Authorization,
    BatchHeader,
    BlobScheme,
    DelayTooLong,
    MAX_DELAY,
    Standard,
    Vault,
    VaultPath,
    WithdrawalGroup,
    WithdrawalTerms
} from "../interfaces/Model.sol";
import {Messages} from "../libraries/Messages.sol";
import {MintingBlob} from "../libraries/MintingBlob.sol";
import {PackedItems} from "../libraries/PackedItems.sol";
import {Signatures} from "../libraries/Signatures.sol";
import {StateProof} from "../libraries/StateProof.sol";
import {VaultProofs} from "./VaultProofs.sol";

/// @title Withdrawals: a proof of a vault and its owner's authorization mint the token. No role, no pause, no operator.
abstract contract Withdrawals is EIP712, ReentrancyGuardTransient, VaultProofs, IWithdrawals {
    /// @dev Offset of a list in the calldata; 0 and a reason when the list is invalid.
    struct Checked {
        uint256 place;
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

    /// @dev Least gas of one item of a batch: proof, signature and token call together. So no caller can make an item
    /// fail by a lack of gas.
    uint64 private constant MIN_ITEM_GAS = 500_000;
    /// @dev Of {withdrawItem}'s calldata: behind the selector, eight words of terms, and three more.
    uint256 private constant ITEM_OFFSET = 4 + 11 * 32;
    /// @dev Most gas of the terms before an item and the report after it.
    uint256 private constant ITEM_RESERVE = 20_000;
    /// @dev Most bytes of a token's error that are kept.
    uint256 private constant MAX_REASON_BYTES = 256;
    /// @dev Most bytes of an item's error. Every error of this contract fits, with a token's error inside.
    uint256 private constant MAX_ITEM_REASON_BYTES = 512;

    /// @inheritdoc IWithdrawals
    uint64 public immutable maturity;

    constructor(uint64 maturity_) {
        if (maturity_ > MAX_DELAY) revert DelayTooLong(maturity_);
        maturity = maturity_;
    }

    /// @inheritdoc IWithdrawals
    function withdraw(
        Vault calldata vault,
        BatchHeader calldata header,
        VaultPath calldata path,
        uint64 quantity,
        address recipient,
        Authorization calldata authorization
    ) external nonReentrant {
        WithdrawalTerms memory terms =
            _terms(vault.vaultId, vault.chainId, vault.assetType, header, path.assetIndex, path.assetSiblings);
        bytes calldata signature = authorization.signature;
        _withdraw(terms, vault, path.siblings, quantity, recipient, authorization.deadline, signature, uint160(msg.sender));
    }

    /// @inheritdoc IWithdrawals
    function withdrawBatch(WithdrawalGroup[] calldata groups, bytes[] calldata lists, uint64 itemGas)
        external
        nonReentrant
        returns (uint256 failed)
    {
        if (itemGas < MIN_ITEM_GAS) revert ItemGasTooLow(itemGas);
        Progress memory progress;
        progress.itemGas = itemGas;
        progress.lists = _checkLists(lists, itemGas);
        for (uint256 i; i < groups.length; ++i) _withdrawGroup(groups[i], progress);
        return progress.failed;
    }

    /// @notice One item of {withdrawBatch}. Only this contract calls it, so that a failing item leaves no effect.
    /// @param by The caller of the batch, or the signer of the item's list, in the form of {PackedItems-Word}.
    function withdrawItem(WithdrawalTerms calldata terms, uint64 vaultId, uint256 assetType, uint256 by) external {
        if (msg.sender != address(this)) revert NotSelf();
        (
            Vault memory vault,
            bytes32[] calldata siblings,
            uint64 quantity,
            address recipient,
            uint64 deadline,
            bytes calldata signature
        ) = PackedItems.read(msg.data[ITEM_OFFSET:], vaultId, assetType);
        _withdraw(terms, vault, siblings, quantity, recipient, deadline, signature, by);
    }

    /// @inheritdoc IWithdrawals
    function withdrawalTerms(
        uint64 vaultId,
        uint256 assetType,
        BatchHeader calldata header,
        uint8 assetIndex,
        bytes32[] calldata assetSiblings
    ) external view returns (WithdrawalTerms memory) {
        return _terms(vaultId, uint64(block.chainid), assetType, header, assetIndex, assetSiblings);
    }

    /// @inheritdoc IWithdrawals
    function checkList(bytes calldata list) external view {
        (address owner, address recipient, uint64 deadline, bytes calldata vaults, bytes calldata signature) = PackedItems.readList(list);
        bytes32 digest = _hashTypedDataV4(Messages.withdrawalList(vaults, recipient, deadline));
        _requireSigned(owner, digest, deadline, signature, true);
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
            (bool done, bytes memory reason) = known ? _tryItem(terms, vaultId, group.assetType, item, progress) : (false, terms);
            if (done) continue;
            ++progress.failed;
            emit WithdrawalFailed(vaultId, reason);
        }
    }

    function _tryItem(bytes memory terms, uint64 vaultId, uint256 assetType, bytes calldata item, Progress memory progress)
        private
        returns (bool done, bytes memory reason)
    {
        PackedItems.Word memory word = progress.word;
        (word.by, word.list) = (uint160(msg.sender), 0);
        if (PackedItems.isListed(item)) {
            uint256 number = PackedItems.listOf(item);
            if (number >= progress.lists.length) revert PackedItems.ListMalformed();
            Checked memory list = progress.lists[number];
            if (list.place == 0) return (false, list.fault);
            word.list = list.place;
            item = PackedItems.unlisted(item, word, vaultId);
        }
        bytes memory callData = PackedItems.callOf(this.withdrawItem.selector, terms, vaultId, assetType, word, item);
        // Checked again, because the copy of a long item uses gas.
        _requireGas(progress.itemGas, progress.index);
        done = _call(address(this), progress.itemGas, callData);
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
        uint64 deadline,
        bytes calldata signature,
        uint256 by
    ) private {
        uint64 vaultId = vault.vaultId;
        if (quantity == 0) revert QuantityZero(vaultId);
        if (recipient == address(0)) revert RecipientZero(vaultId);
        _requireProven(vault, terms.assetIndex, terms.batchRoot, terms.manifestRoot, terms.vaultCount, siblings);
        Standard standard = terms.standard;
        _requirePayable(vault, standard, terms.scheme);
        uint64 before;
        if (standard == Standard.ERC721) {
            if (quantity != 1) revert QuantityTooLarge(vaultId, quantity, 1);
            _take(vaultId);
        } else {
            before = _spend(vaultId, quantity, vault.amount);
        }
        _authorize(vaultId, vault.owner, before, quantity, recipient, deadline, signature, by);
        emit Withdrawn(vaultId, recipient, quantity, before + quantity);
        _mint(terms.token, recipient, quantity * terms.quantum, vault.blob);
    }

    /// @dev A call to this contract, so that an error of the group is reported for each of its items.
    function _askTerms(uint64 vaultId, WithdrawalGroup calldata group) private view returns (bool, bytes memory) {
        return address(this).staticcall(
            abi.encodeCall(
                this.withdrawalTerms, (vaultId, group.assetType, group.header, group.assetIndex, group.assetSiblings)
            )
        );
    }

    /// @dev The terms that all vaults of a batch and an asset share. Reverts when none of them can be withdrawn now.
    function _terms(
        uint64 vaultId,
        uint64 chainId,
        uint256 assetType,
        BatchHeader calldata header,
        uint256 assetIndex,
        bytes32[] calldata assetSiblings
    ) private view returns (WithdrawalTerms memory) {
        _requireHeader(vaultId, header);
        if (chainId != block.chainid) revert OtherChain(chainId);
        Asset storage found = _assets[chainId][assetType];
        (address token, Standard standard, BlobScheme scheme) = (found.token, found.standard, found.scheme);
        if (standard == Standard.None) revert IAssetRegistry.AssetNotRegistered(chainId, assetType);
        if (header.sequence < found.since) revert BatchBeforeRegistration(vaultId, found.since);
        if (standard == Standard.ERC721) {
            uint64 maturesAt = header.committedAt + maturity;
            if (block.timestamp < maturesAt) revert NotMature(vaultId, maturesAt);
        }
        // If the manifest does not name the asset, no siblings of the vault lead to the batch root.
        (bool shown, bytes32 manifestRoot) = StateProof.manifestRootOf(chainId, assetType, assetIndex, assetSiblings);
        if (!shown) revert IVaultProofs.ProofInvalid(vaultId);
        uint256 quantum = standard == Standard.ERC20 ? found.quantum : 1;
        return WithdrawalTerms(header.batchRoot, manifestRoot, header.vaultCount, uint8(assetIndex), token, standard, scheme, quantum);
    }

    /// @dev This is the first check of a validium leaf's content on L1.
    function _requirePayable(Vault memory vault, Standard standard, BlobScheme scheme) private pure {
        (uint64 vaultId, uint64 amount, uint256 blobLength) = (vault.vaultId, vault.amount, vault.blob.length);
        if (amount == 0 || amount > uint64(type(int64).max)) revert AmountInvalid(vaultId, amount);
        if ((standard == Standard.ERC20) != (blobLength == 0) || blobLength > 255) revert BlobLengthInvalid(vaultId, blobLength);
        if (standard != Standard.ERC721) return;
        if (amount != 1) revert AmountInvalid(vaultId, amount);
        // A token may accept more spellings than the scheme has. {voidDuplicate} does not know the ids of those.
        if (scheme == BlobScheme.Imx) MintingBlob.imxTokenId(vault.blob);
        if (scheme == BlobScheme.Raw32) MintingBlob.rawTokenId(vault.blob);
    }

    function _spend(uint64 vaultId, uint64 quantity, uint64 amount) private returns (uint64 before) {
        uint256 word = _withdrawn[vaultId >> 2];
        uint256 shift = (vaultId & 3) << 6;
        before = uint64(word >> shift);
        if (before == amount) revert IVaultProofs.VaultExhausted(vaultId);
        if (quantity > amount - before) revert QuantityTooLarge(vaultId, quantity, amount - before);
        _withdrawn[vaultId >> 2] = word + (uint256(quantity) << shift);
    }

    function _authorize(
        uint64 vaultId,
        address owner,
        uint64 before,
        uint64 quantity,
        address recipient,
        uint64 deadline,
        bytes calldata signature,
        uint256 by
    ) private view {
        if (signature.length == 0) {
            if (address(uint160(by)) != owner) revert NotOwner(vaultId, address(uint160(by)));
            // A list authorizes the item, and names the quantity withdrawn before.
            if (by >> 160 != 0 && uint64(by >> 161) != before) revert NotListed(vaultId);
            return;
        }
        bytes32 digest = _hashTypedDataV4(Messages.withdrawal(vaultId, before, quantity, recipient, deadline));
        bool mayBeCancelled = (_hasCancelled[vaultId >> 8] >> (vaultId & 0xff)) & 1 == 1;
        _requireSigned(owner, digest, deadline, signature, mayBeCancelled);
    }

    function _requireSigned(address owner, bytes32 digest, uint64 deadline, bytes calldata signature, bool mayBeCancelled) private view {
        if (block.timestamp > deadline) revert AuthorizationExpired(deadline);
        if (mayBeCancelled && _cancelled[owner][digest]) revert AuthorizationIsCancelled(digest);
        if (!_signed(owner, digest, signature, gasleft())) revert SignatureInvalid(digest);
    }

    /// @dev Each list is checked by a call with an item's gas, so that a misbehaving wallet contract costs no more than
    /// an item.
    function _checkLists(bytes[] calldata lists, uint256 itemGas) private returns (Checked[] memory found) {
        found = new Checked[](lists.length);
        for (uint256 i; i < lists.length; ++i) {
            bytes calldata list = lists[i];
            bytes memory callData = abi.encodeCall(this.checkList, (list));
            _requireGas(itemGas, 0);
            if (!_call(address(this), itemGas, callData)) found[i].fault = _reason(MAX_ITEM_REASON_BYTES);
            else found[i].place = PackedItems.placeOf(list);
        }
    }

    /// @dev Tries the key first, because an account with delegated code (EIP-7702) still signs with its key. Then it
    /// asks the wallet contract, with at most `gas_`.
    function _signed(address owner, bytes32 digest, bytes calldata signature, uint256 gas_) internal view returns (bool) {
        address signer = Signatures.signerOf(digest, signature);
        if (signer != address(0) && signer == owner) return true;
        return owner.code.length != 0 && _walletTakes(owner, abi.encodeCall(IERC1271.isValidSignature, (digest, signature)), gas_);
    }

    /// @dev Copies only one word of the answer.
    function _walletTakes(address wallet, bytes memory question, uint256 gas_) private view returns (bool taken) {
        bytes4 yes = IERC1271.isValidSignature.selector;
        assembly ("memory-safe") {
            taken := staticcall(gas_, wallet, add(question, 0x20), mload(question), 0, 32)
            taken := and(and(taken, gt(returndatasize(), 31)), eq(mload(0), yes))
        }
    }

    function _mint(address token, address recipient, uint256 quantity, bytes memory blob) private {
        if (token.code.length == 0) revert IAssetRegistry.TokenWithoutCode(token);
        if (!_call(token, gasleft(), abi.encodeCall(IMintable.mintFor, (recipient, quantity, blob)))) {
            revert TokenRefused(token, _reason(MAX_REASON_BYTES));
        }
    }

    /// @dev Reverts unless an item can get its gas and enough is left for the report. A call leaves a 64th of the gas
    /// with the caller.
    function _requireGas(uint256 itemGas, uint256 index) private view {
        unchecked {
            // No overflow: `itemGas` has 64 bits.
            if (gasleft() < itemGas + itemGas / 63 + ITEM_RESERVE) revert GasTooLow(index);
        }
    }

    /// @dev Copies none of the answer.
    function _call(address to, uint256 gas_, bytes memory callData) private returns (bool done) {
        assembly ("memory-safe") {
            done := call(gas_, to, 0, add(callData, 0x20), mload(callData), 0, 0)
        }
    }

    /// @dev The first `most` bytes of the last call's answer. So a long answer costs only the contract that gives it.
    function _reason(uint256 most) private pure returns (bytes memory reason) {
        assembly ("memory-safe") {
            let size := returndatasize()
            if gt(size, most) { size := most }
            reason := mload(0x40)
            mstore(0x40, add(reason, add(0x20, and(add(size, 0x1f), not(0x1f)))))
            mstore(reason, size)
            returndatacopy(add(reason, 0x20), 0, size)
        }
    }
}
