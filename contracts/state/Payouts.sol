// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {ReentrancyGuardTransient} from "@openzeppelin/contracts/utils/ReentrancyGuardTransient.sol";
import {IAssetRegistry} from "../interfaces/IAssetRegistry.sol";
import {IMintable} from "../interfaces/IMintable.sol";
import {IVaultProofs} from "../interfaces/IVaultProofs.sol";
import {IWithdrawals} from "../interfaces/IWithdrawals.sol";
import {
    BatchHeader,
    MintingBlobScheme,
    Standard,
    TRANSFERABLE,
    Vault,
    WithdrawalTerms
} from "../interfaces/Model.sol";
import {MintingBlob} from "../libraries/MintingBlob.sol";
import {PackedItems} from "../libraries/PackedItems.sol";
import {StateProof} from "../libraries/StateProof.sol";
import {VaultProofs} from "./VaultProofs.sol";

/// @title The rules by which a vault is paid, whether its owner has it from a mint or from a
/// transfer.
abstract contract Payouts is ReentrancyGuardTransient, VaultProofs {
    /// @dev Most bytes of a token's error that are kept.
    uint256 private constant MAX_REASON_BYTES = 256;
    /// @dev Most bytes of the error of an item or a trade. Every error of this contract fits, with
    /// a token's error inside.
    uint256 internal constant MAX_ITEM_REASON_BYTES = 512;
    /// @dev Gas of eight records and a refutation, which a vault with a way gets besides.
    uint256 internal constant WAY_GAS = 300_000;
    /// @dev Most gas of the terms before an item and the report after it.
    uint256 private constant ITEM_RESERVE = 20_000;

    /// @dev Mints a proven vault, or a part of it, by its owner's word.
    /// @param by The caller, or the signer of an item's list, in the form of {PackedItems-LISTED}.
    function _pay(
        WithdrawalTerms memory terms,
        Vault memory vault,
        uint64 quantity,
        address recipient,
        uint256 by
    ) internal {
        _consume(terms.standard, vault, quantity, recipient, by);
        unchecked {
            // A quantum has 128 bits.
            _mint(terms.token, recipient, quantity * terms.quantum, vault.mintingBlob);
        }
    }

    /// @dev Takes units off a proven vault by its owner's word, for whoever `recipient` is.
    function _consume(
        Standard standard,
        Vault memory vault,
        uint64 quantity,
        address recipient,
        uint256 by
    ) internal {
        uint64 vaultId = vault.vaultId;
        uint64 before;
        if (standard == Standard.ERC721) {
            if (quantity != 1) revert IWithdrawals.QuantityTooLarge(vaultId, quantity, 1);
            _take(vaultId);
        } else {
            before = _spend(vaultId, quantity, vault.amount);
        }
        _authorize(vaultId, vault.owner, before, by);
        unchecked {
            // The sum is at most the vault's amount.
            emit IWithdrawals.Withdrawn(vaultId, recipient, quantity, before + quantity);
        }
    }

    /// @dev Reverts unless the call asks for something, for somebody.
    function _requireAsked(uint64 vaultId, uint64 quantity, address recipient) internal pure {
        if (quantity == 0) revert IWithdrawals.QuantityZero(vaultId);
        if (recipient == address(0)) revert IWithdrawals.RecipientZero(vaultId);
    }

    /// @dev Reverts unless the batch of these terms holds the vault, and the vault is one that
    /// counts and that a token can mint.
    function _requireVault(
        WithdrawalTerms memory terms,
        Vault memory vault,
        bytes32[] calldata siblings
    ) internal view {
        _requireProven(
            vault,
            terms.assetIndex,
            terms.batchRoot,
            terms.manifestRoot,
            terms.vaultCount,
            siblings
        );
        _requirePayable(vault, terms.standard, terms.scheme);
        // No other flag, so nothing that a token or its owners can do has ended the vault.
        if (terms.flags > TRANSFERABLE) _requireCounted(vault, terms.scheme, terms.flags);
    }

    /// @dev The terms that all vaults of a batch and an asset share. Reverts when none of them can
    /// be withdrawn now.
    /// @param maturity Seconds that an ERC-721 vault waits after its commit.
    function _terms(
        uint64 vaultId,
        uint64 chainId,
        uint256 assetType,
        BatchHeader calldata header,
        uint256 assetIndex,
        bytes32[] calldata assetSiblings,
        uint64 maturity
    ) internal view returns (WithdrawalTerms memory terms) {
        _revertWith(
            _fillTerms(
                terms,
                vaultId,
                chainId,
                assetType,
                header,
                assetIndex,
                assetSiblings,
                maturity
            )
        );
    }

    /// @dev {_terms}, with the error in place of a revert.
    function _fillTerms(
        WithdrawalTerms memory terms,
        uint64 vaultId,
        uint64 chainId,
        uint256 assetType,
        BatchHeader calldata header,
        uint256 assetIndex,
        bytes32[] calldata assetSiblings,
        uint64 maturity
    ) internal view returns (bytes memory fault) {
        (bytes32 hash, uint32 vaultCount, uint64 committedAt, uint64 sequence) = StateProof
            .readHeader(header);
        if (!_isHeaderHash(vaultId, hash))
            return abi.encodeWithSelector(IVaultProofs.HeaderMismatch.selector, vaultId);
        if (chainId != block.chainid)
            return abi.encodeWithSelector(IWithdrawals.OtherChain.selector, chainId);
        Asset storage found = _assets[chainId][assetType];
        Standard standard = found.standard;
        if (standard == Standard.None)
            return
                abi.encodeWithSelector(
                    IAssetRegistry.AssetNotRegistered.selector,
                    chainId,
                    assetType
                );
        if (sequence < found.since)
            return
                abi.encodeWithSelector(
                    IWithdrawals.BatchBeforeRegistration.selector,
                    vaultId,
                    found.since
                );
        if (standard == Standard.ERC721) {
            uint64 maturesAt = committedAt + maturity;
            if (block.timestamp < maturesAt)
                return abi.encodeWithSelector(IWithdrawals.NotMature.selector, vaultId, maturesAt);
        }
        // If the manifest does not name the asset, no siblings of the vault lead to the batch root.
        (bool shown, bytes32 manifestRoot) = StateProof.manifestRootOf(
            chainId,
            assetType,
            assetIndex,
            assetSiblings
        );
        if (!shown) return abi.encodeWithSelector(IVaultProofs.ProofInvalid.selector, vaultId);
        terms.batchRoot = header.batchRoot;
        terms.manifestRoot = manifestRoot;
        terms.vaultCount = vaultCount;
        terms.assetIndex = uint8(assetIndex);
        terms.token = found.token;
        terms.standard = standard;
        terms.scheme = found.scheme;
        terms.quantum = standard == Standard.ERC20 ? found.quantum : 1;
        terms.flags = found.flags;
    }

    /// @dev Reverts with an encoded error, unless it is empty.
    function _revertWith(bytes memory fault) internal pure {
        assembly ("memory-safe") {
            if mload(fault) {
                revert(add(fault, 0x20), mload(fault))
            }
        }
    }

    /// @dev This is the first check of a leaf's content on L1. The words of a vault have only
    /// amounts of 1 to 2^63 - 1, and minting blobs of up to 255 bytes.
    function _requirePayable(
        Vault memory vault,
        Standard standard,
        MintingBlobScheme scheme
    ) internal pure {
        uint256 mintingBlobLength = vault.mintingBlob.length;
        if ((standard == Standard.ERC20) != (mintingBlobLength == 0))
            revert IWithdrawals.MintingBlobLengthInvalid(vault.vaultId, mintingBlobLength);
        if (standard != Standard.ERC721) return;
        if (vault.amount != 1) revert IWithdrawals.AmountInvalid(vault.vaultId, vault.amount);
        // A token may accept more spellings than the scheme has. {voidDuplicate} does not know the
        // ids of those.
        if (scheme == MintingBlobScheme.Imx) MintingBlob.imxTokenId(vault.mintingBlob);
        if (scheme == MintingBlobScheme.Raw32) MintingBlob.rawTokenId(vault.mintingBlob);
    }

    function _spend(
        uint64 vaultId,
        uint64 quantity,
        uint64 amount
    ) private returns (uint64 before) {
        uint64 place = _placeOf(vaultId);
        Word storage word = _withdrawn[place >> 2];
        uint256 bits = word.bits;
        uint256 shift = (place & 3) << 6;
        before = uint64(bits >> shift);
        if (before == amount) revert IVaultProofs.VaultExhausted(vaultId);
        if (quantity > amount - before)
            revert IWithdrawals.QuantityTooLarge(vaultId, quantity, amount - before);
        word.bits = bits + (uint256(quantity) << shift);
    }

    /// @dev A list names its vaults and the quantities that were withdrawn before, so each entry
    /// authorizes once.
    function _authorize(uint64 vaultId, address owner, uint64 before, uint256 by) private view {
        if (address(uint160(by)) != owner)
            revert IWithdrawals.NotOwner(vaultId, address(uint160(by)));
        if (by & PackedItems.LISTED == 0) return;
        if (uint64(by >> PackedItems.BEFORE) != before) revert IWithdrawals.NotListed(vaultId);
        bytes32 id = bytes32(uint256(vaultId));
        if (by & PackedItems.HAS_CANCELLED != 0 && _cancelled[owner][id])
            revert IWithdrawals.AuthorizationIsCancelled(id);
    }

    function _mint(
        address token,
        address recipient,
        uint256 quantity,
        bytes memory mintingBlob
    ) private {
        if (token.code.length == 0) revert IAssetRegistry.TokenWithoutCode(token);
        if (!_minted(token, recipient, quantity, mintingBlob))
            revert IWithdrawals.TokenRefused(token, _reason(MAX_REASON_BYTES));
    }

    /// @dev `mintFor` with all gas. Copies none of the answer.
    function _minted(
        address token,
        address recipient,
        uint256 quantity,
        bytes memory mintingBlob
    ) private returns (bool done) {
        uint256 selector = uint32(IMintable.mintFor.selector);
        uint256 to = uint160(recipient);
        assembly ("memory-safe") {
            let free := mload(0x40)
            let length := mload(mintingBlob)
            mstore(free, selector)
            mstore(add(free, 0x20), to)
            mstore(add(free, 0x40), quantity)
            mstore(add(free, 0x60), 0x60)
            mstore(add(free, 0x80), length)
            // The minting blob ends with zeros.
            mstore(add(add(free, 0xa0), length), 0)
            mcopy(add(free, 0xa0), add(mintingBlob, 0x20), length)
            let size := add(0x84, and(add(length, 0x1f), not(0x1f)))
            done := call(gas(), token, 0, add(free, 0x1c), size, 0, 0)
        }
    }

    /// @dev Reverts unless an item or a trade can get its gas and enough is left for the report. A
    /// call leaves a 64th of the gas with the caller.
    function _requireGas(uint256 itemGas, uint256 index) internal view {
        unchecked {
            // No overflow: `itemGas` has 64 bits.
            if (gasleft() < itemGas + itemGas / 63 + ITEM_RESERVE)
                revert IWithdrawals.GasTooLow(index);
        }
    }

    /// @dev Copies none of the answer.
    function _call(address to, uint256 gas_, bytes memory callData) internal returns (bool done) {
        assembly ("memory-safe") {
            done := call(gas_, to, 0, add(callData, 0x20), mload(callData), 0, 0)
        }
    }

    /// @dev The first `most` bytes of the last call's answer. So a long answer costs only the
    /// contract that gives it.
    function _reason(uint256 most) internal pure returns (bytes memory reason) {
        assembly ("memory-safe") {
            let size := returndatasize()
            if gt(size, most) {
                size := most
            }
            reason := mload(0x40)
            mstore(0x40, add(reason, add(0x20, and(add(size, 0x1f), not(0x1f)))))
            mstore(reason, size)
            returndatacopy(add(reason, 0x20), 0, size)
        }
    }
}
