// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {IMakings} from "../interfaces/IMakings.sol";
import {ENTERED, MADE, Standard, Vault} from "../interfaces/Model.sol";
import {Manifest} from "../libraries/Manifest.sol";
import {MintingBlob} from "../libraries/MintingBlob.sol";
import {VaultWords} from "../libraries/VaultWords.sol";
import {Renewals} from "./Renewals.sol";
import {Trades} from "./Trades.sol";

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
/// Vaults become others by {Renewals-renew}: it checks all that a withdrawal checks, takes what the
/// owner's list says, and makes vaults of it in place of tokens. Two owners' vaults become each
/// other's by {Trades-settle}.
///
/// The settlement contract runs this code on its own storage. It has no state of its own, no
/// constructor and no immutable value, so each deployment of it has the same code.
contract Makings is Renewals, Trades {
    /// @inheritdoc IMakings
    function make(
        uint256 assetType,
        address owner,
        uint256 amount,
        bytes calldata mintingBlob
    ) external nonReentrant returns (uint64 vaultId) {
        Asset storage asset = _assets[uint64(block.chainid)][assetType];
        if (asset.token != msg.sender) revert NotToken(assetType, msg.sender);
        (Standard standard, uint256 quantum) = (asset.standard, asset.quantum);
        if (amount % quantum != 0) revert AmountIndivisible(amount, quantum);
        uint256 units = amount / quantum;
        if (owner == address(0) || units > MAX_UNITS)
            revert VaultUnpayable(owner, amount, mintingBlob);
        uint64 making = uint64(_head >> MAKINGS) + 1;
        vaultId = MADE | (making << 20);
        Vault memory vault = Vault(
            vaultId,
            uint64(block.chainid),
            owner,
            assetType,
            uint64(units),
            mintingBlob
        );
        _requirePayable(vault, standard, asset.scheme);
        (uint256 head, bytes memory continuations) = VaultWords.wordsOf(vault, 0);
        if (head == 0) revert VaultUnpayable(owner, amount, mintingBlob);
        emit VaultMade(vaultId, owner, assetType, uint64(units), mintingBlob);
        if (standard != Standard.ERC20) {
            // The token can mint only what its scheme spells, whatever its standard.
            uint256 tokenId = MintingBlob.idOf(asset.scheme, vault.mintingBlob);
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
}
