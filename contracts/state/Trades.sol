// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {MessageHashUtils} from "@openzeppelin/contracts/utils/cryptography/MessageHashUtils.sol";
import {IMakings, TradedAsset} from "../interfaces/IMakings.sol";
import {IDeployment} from "../interfaces/IStateCommitment.sol";
import {ITransfers} from "../interfaces/ITransfers.sol";
import {IWithdrawals} from "../interfaces/IWithdrawals.sol";
import {Standard, TRANSFERABLE, Vault, WithdrawalTerms} from "../interfaces/Model.sol";
import {Manifest} from "../libraries/Manifest.sol";
import {MintingBlob} from "../libraries/MintingBlob.sol";
import {Orders} from "../libraries/Orders.sol";
import {PackedItems} from "../libraries/PackedItems.sol";
import {PackedTrades} from "../libraries/PackedTrades.sol";
import {MadeVaults} from "./MadeVaults.sol";

/// @title Two owners' vaults become each other's, by orders that both have signed.
///
/// @notice The way of a trade:
///
///   1. {settle} runs {settleTrade} for each trade, as a call of its own with a bound on its gas.
///   So
///      a trade that fails changes nothing, and costs the others nothing.
///   2. Of both vaults a trade checks what a withdrawal checks, and takes the units that the order
///      gives ({Payouts-_consume}).
///   3. L1 makes the hash of each order from what it has found: the tokens, ids and amounts of both
///      vaults. So an order that says anything else is one that nobody has signed.
///   4. The trade returns who gets how much of which side. When all trades are done, {settle} takes
///      the making's number and makes those vaults.
abstract contract Trades is MadeVaults {
    /// @dev Least gas of one trade: both proofs with ten openings each, and both wallets. So no
    /// caller can make a trade fail by a lack of gas.
    uint64 private constant MIN_TRADE_GAS = 2_000_000;
    /// @dev Most gas of a wallet contract that is asked about an order.
    uint256 private constant WALLET_GAS = 400_000;
    /// @dev Most vaults that trades make in one call. So few never name too many assets.
    uint256 private constant MAX_TRADED = Manifest.MAX_ASSETS;
    /// @dev Two owners, and four shares of each.
    uint256 private constant MAX_OUTPUTS = 10;

    /// @dev Bits of a trade's task: offset in the trades, vaults made before it, maturity.
    uint256 private constant BEFORE = 64;
    uint256 private constant MATURITY = 128;

    /// @dev Bits of a trade's output: the side whose asset it has, units, owner.
    uint256 private constant UNITS = 32;
    uint256 private constant OWNER = 96;

    /// @dev How far a call is.
    struct Progress {
        address code;
        uint256 tradeGas;
        /// @dev Place in memory of the calldata for each trade.
        uint256 input;
        /// @dev Place in memory of the outputs, a word each.
        uint256 outputs;
        uint256 count;
        uint256 index;
        uint256 failed;
    }

    /// @inheritdoc IMakings
    function settle(
        TradedAsset[] calldata assets,
        bytes calldata trades,
        uint64 tradeGas
    ) external nonReentrant returns (uint64 making, uint256 failed) {
        if (tradeGas < MIN_TRADE_GAS) revert IWithdrawals.ItemGasTooLow(tradeGas);
        Progress memory progress = _start(tradeGas);
        // This code has no constructor that could keep the maturity. The settlement contract
        // answers itself.
        uint256 maturity = uint256(IWithdrawals(address(this)).maturity()) << MATURITY;
        for (uint256 offset; offset < trades.length; ++progress.index) {
            (uint256 end, uint256 ways) = PackedTrades.next(trades, offset);
            uint256 task = maturity | (progress.count << BEFORE) | offset;
            if (!_try(progress, task, ways)) _fail(progress, assets, trades, offset);
            offset = end;
        }
        failed = progress.failed;
        if (progress.count == 0) return (0, failed);
        // Behind every call of another contract, so that the number is still free.
        Making memory made = _begin(progress.count);
        for (uint256 i; i < progress.count; ++i) {
            uint256 output;
            uint256 free;
            assembly ("memory-safe") {
                output := mload(add(mload(add(progress, 0x60)), shl(5, i)))
                free := mload(0x40)
            }
            _addOutput(made, assets, trades, output);
            assembly ("memory-safe") {
                mstore(0x40, free)
            }
        }
        _end(made);
        return (made.number, failed);
    }

    /// @notice One trade of {settle}, which alone runs it, by a call of its own code on the same
    /// storage. The settlement contract has no such function.
    /// @dev The arguments are those of {settle}, byte for byte, and the task is a word behind them.
    /// {settle} reads the assets and the sides again when it makes vaults. If it wrote the task
    /// over an argument, a caller could let an offset point there, and each would read other
    /// assets.
    /// @return The outputs, a word each, without ABI encoding.
    function settleTrade(
        TradedAsset[] calldata assets,
        bytes calldata trades,
        uint64
    ) external returns (uint256[] memory) {
        uint256 task;
        assembly ("memory-safe") {
            task := calldataload(sub(calldatasize(), 0x20))
        }
        uint64 maturity = uint64(task >> MATURITY);
        (bytes calldata packed, uint256 end) = PackedTrades.sideAt(trades, uint64(task));
        PackedTrades.Side memory maker = _give(assets, packed, maturity);
        maker.place = uint64(task);
        (packed, ) = PackedTrades.sideAt(trades, end);
        PackedTrades.Side memory taker = _give(assets, packed, maturity);
        taker.place = end;
        bytes32 domain = _domain();
        _requireOrder(maker, taker, domain);
        _requireOrder(taker, maker, domain);
        emit Traded(maker.vaultId, taker.vaultId);
        uint256[] memory outputs = new uint256[](MAX_OUTPUTS);
        uint256 count = _receive(maker, taker, outputs, 0);
        count = _receive(taker, maker, outputs, count);
        if (uint64(task >> BEFORE) + count > MAX_TRADED) revert MakingFull();
        assembly ("memory-safe") {
            return(add(outputs, 0x20), shl(5, count))
        }
    }

    /// @dev Copies the calldata for the trades, with another selector, and a word behind it.
    function _start(uint64 tradeGas) private view returns (Progress memory progress) {
        progress.code = IDeployment(address(this)).makingsCode();
        progress.tradeGas = tradeGas;
        bytes4 selector = this.settleTrade.selector;
        assembly ("memory-safe") {
            let input := mload(0x40)
            calldatacopy(input, 0, calldatasize())
            mstore(input, or(selector, shr(32, shl(32, mload(input)))))
            mstore(add(progress, 0x40), input)
            let outputs := and(add(add(input, calldatasize()), 0x3f), not(0x1f))
            mstore(add(progress, 0x60), outputs)
            mstore(0x40, outputs)
        }
    }

    /// @dev Runs one trade, and keeps its outputs.
    function _try(
        Progress memory progress,
        uint256 task,
        uint256 ways
    ) private returns (bool done) {
        uint256 tradeGas = progress.tradeGas + ways * WAY_GAS;
        _requireGas(tradeGas, progress.index);
        address code = progress.code;
        assembly ("memory-safe") {
            let input := mload(add(progress, 0x40))
            mstore(add(input, calldatasize()), task)
            done := delegatecall(tradeGas, code, input, add(calldatasize(), 0x20), 0, 0)
            if done {
                let count := mload(add(progress, 0x80))
                let free := add(mload(add(progress, 0x60)), shl(5, count))
                returndatacopy(free, 0, returndatasize())
                mstore(add(progress, 0x80), add(count, shr(5, returndatasize())))
                mstore(0x40, add(free, returndatasize()))
            }
        }
    }

    function _fail(
        Progress memory progress,
        TradedAsset[] calldata assets,
        bytes calldata trades,
        uint256 offset
    ) private {
        uint256 free;
        assembly ("memory-safe") {
            free := mload(0x40)
        }
        bytes memory reason = _reason(MAX_ITEM_REASON_BYTES);
        ++progress.failed;
        (bytes calldata maker, uint256 end) = PackedTrades.sideAt(trades, offset);
        (bytes calldata taker, ) = PackedTrades.sideAt(trades, end);
        emit TradeFailed(_vaultIdOf(assets, maker), _vaultIdOf(assets, taker), reason);
        assembly ("memory-safe") {
            mstore(0x40, free)
        }
    }

    /// @dev Zero when the side names no asset of the call.
    function _vaultIdOf(
        TradedAsset[] calldata assets,
        bytes calldata packed
    ) private pure returns (uint64) {
        uint256 asset = PackedTrades.assetOf(packed);
        if (asset >= assets.length) return 0;
        return PackedTrades.vaultIdOf(packed, _firstIdOf(assets[asset]));
    }

    function _firstIdOf(TradedAsset calldata asset) private pure returns (uint64) {
        return (uint64(asset.mode) << 63) | (asset.batchNumber << 20);
    }

    /// @dev Proves a side's vault, and takes off it what the order gives.
    function _give(
        TradedAsset[] calldata assets,
        bytes calldata packed,
        uint64 maturity
    ) private returns (PackedTrades.Side memory) {
        uint256 number = PackedTrades.assetOf(packed);
        if (number >= assets.length) revert PackedItems.ItemMalformed(0);
        TradedAsset calldata asset = assets[number];
        uint64 firstVaultId = _firstIdOf(asset);
        (
            PackedTrades.Side memory side,
            Vault memory vault,
            bytes calldata hops,
            bytes calldata refutation,
            bytes32[] calldata siblings
        ) = PackedTrades.read(packed, firstVaultId);
        vault.assetType = asset.assetType;
        WithdrawalTerms memory terms = _terms(
            vault.vaultId,
            uint64(block.chainid),
            vault.assetType,
            asset.header,
            asset.assetIndex,
            asset.assetSiblings,
            maturity
        );
        if (side.flags & PackedTrades.HAS_WAY != 0) {
            vault = _tipOf(terms, vault, siblings, hops, refutation);
            if (vault.vaultId != side.vaultId) revert PackedItems.ItemMalformed(vault.vaultId);
        } else {
            if (terms.flags & TRANSFERABLE == 0) revert ITransfers.NotTransferable(vault.assetType);
            _requireVault(terms, vault, siblings);
            if (_isSpent(vault.vaultId)) revert IWithdrawals.VaultSpent(vault.vaultId);
        }
        _requireAsked(vault.vaultId, side.units, address(this));
        side.owner = vault.owner;
        uint256 by =
            uint160(vault.owner) |
                PackedItems.LISTED |
                (uint256(side.before) << PackedItems.BEFORE);
        if (_cancelled[vault.owner][ANY]) {
            side.hasCancelled = true;
            by |= PackedItems.HAS_CANCELLED;
        }
        _consume(terms.standard, vault, side.units, address(this), by);
        side.token = terms.token;
        side.quantum = terms.quantum;
        if (terms.standard != Standard.ERC20)
            side.tokenId = MintingBlob.idOf(terms.scheme, vault.mintingBlob);
        side.give = _item(side, side.units);
        return side;
    }

    /// @dev Reverts unless the side's owner has signed the order that this trade is, or calls.
    function _requireOrder(
        PackedTrades.Side memory side,
        PackedTrades.Side memory other,
        bytes32 domain
    ) private view {
        if (block.timestamp > side.deadline)
            revert IWithdrawals.AuthorizationExpired(side.deadline);
        bytes32 want = other.give;
        if (side.flags & PackedTrades.HAS_WANT != 0) {
            if (side.want > other.units) revert OrderUnmet(side.vaultId, side.want, other.units);
            want = _item(other, side.want);
        }
        bytes32 digest = MessageHashUtils.toTypedDataHash(
            domain,
            Orders.order(
                side.give,
                want,
                Orders.shares(PackedTrades.partOf(side.shares), other.quantum),
                side.flags & PackedTrades.HAS_TAKER != 0 ? other.owner : address(0),
                side.vaultId,
                side.before,
                side.deadline
            )
        );
        if (side.hasCancelled && _cancelled[side.owner][digest])
            revert IWithdrawals.AuthorizationIsCancelled(digest);
        bytes calldata signature = PackedTrades.partOf(side.signature);
        if (signature.length == 0 && msg.sender == side.owner) return;
        if (!_signed(side.owner, digest, signature, WALLET_GAS))
            revert IWithdrawals.SignatureInvalid(digest);
    }

    function _item(PackedTrades.Side memory side, uint64 units) private pure returns (bytes32) {
        unchecked {
            // A quantum has 128 bits.
            return Orders.item(side.token, side.tokenId, units * side.quantum);
        }
    }

    /// @dev Writes who gets what of what the other side gives: the shares, and the owner the rest.
    function _receive(
        PackedTrades.Side memory side,
        PackedTrades.Side memory other,
        uint256[] memory outputs,
        uint256 count
    ) private pure returns (uint256) {
        unchecked {
            uint256 left = other.units;
            bytes calldata shares = PackedTrades.partOf(side.shares);
            for (uint256 offset; offset < shares.length; offset += Orders.SHARE_BYTES) {
                uint256 share = uint256(bytes32(shares[offset:])) >> 32;
                uint256 units = uint64(share);
                if (share >> 64 == 0 || units == 0 || units > left)
                    revert ShareInvalid(side.vaultId);
                left -= units;
                outputs[count++] = (share << UNITS) | other.place;
            }
            if (left != 0)
                outputs[count++] =
                    (uint256(uint160(side.owner)) << OWNER) |
                    (left << UNITS) |
                    other.place;
            return count;
        }
    }

    function _addOutput(
        Making memory made,
        TradedAsset[] calldata assets,
        bytes calldata trades,
        uint256 output
    ) private {
        (bytes calldata packed, ) = PackedTrades.sideAt(trades, uint32(output));
        Vault memory vault;
        vault.owner = address(uint160(output >> OWNER));
        vault.amount = uint64(output >> UNITS);
        vault.assetType = assets[PackedTrades.assetOf(packed)].assetType;
        vault.mintingBlob = PackedTrades.mintingBlobOf(packed);
        _add(made, vault);
    }
}
