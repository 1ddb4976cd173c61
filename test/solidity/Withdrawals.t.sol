// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {Authorization, Mode, Standard, Vault, WithdrawalGroup} from "../../contracts/interfaces/Model.sol";
import {PackedItems} from "../../contracts/libraries/PackedItems.sol";
import {expect} from "./support/Expect.sol";
import {Packing} from "./support/Packing.sol";
import {Settlement} from "./support/Settlement.sol";
import {vm} from "./support/Vm.sol";

/// @dev Withdrawals of one vault with random amounts, signatures and callers.
contract WithdrawalsFuzz is Settlement {
    uint64 private constant MAX_AMOUNT = uint64(type(int64).max);

    function testFuzz_partsNeverExceedTheVault(uint64 amount, uint64[6] memory parts, bool rollup) external {
        amount = 1 + amount % MAX_AMOUNT;
        Place storage place = _coins(amount, rollup ? Mode.ZkRollup : Mode.Validium);
        uint64 total;
        for (uint256 i; i < parts.length; ++i) {
            uint64 part = parts[i] >> (10 * i);
            bool fits = part != 0 && part <= amount - total;
            require(_withdraw(place, part, place.vault.owner, Authorization(0, "")) == fits, "a part");
            if (fits) total += part;
            require(state.withdrawn(place.vault.vaultId, Standard.ERC20) == total, "the count");
            require(coin.totalSupply() == uint256(total) * QUANTUM, "the coins");
        }
    }

    function testFuzz_randomBytesAreNobodysSignature(bytes memory signature, address caller, uint64 deadline) external {
        Place storage place = _coins(10, Mode.Validium);
        vm.assume(caller != place.vault.owner && caller != address(0));
        // Without signature and deadline, {_withdraw} would be the owner's own call.
        if (deadline == 0) deadline = 1;
        require(!_withdraw(place, 1, caller, Authorization(deadline, signature)), "taken");
    }

    function testFuzz_aSignatureIsForOneMessage(uint64 quantity, uint64 before, uint64 deadline, address recipient, uint8 field) external {
        Place storage place = _coins(10, Mode.Validium);
        vm.assume(recipient != address(0) && recipient != address(1));
        (quantity, before) = (1 + quantity % 10, before % 10);
        deadline = uint64(block.timestamp) + deadline % 1 days;
        uint256 key = keyOf(place.vault.owner);
        bytes memory signature = sign(key, place.vault.vaultId, before, quantity, recipient, deadline);
        bool honest = before == 0;
        Authorization memory authorization = Authorization(deadline, signature);
        if (field % 4 == 1) (recipient, honest) = (address(1), false);
        if (field % 4 == 2) (quantity, honest) = (quantity % 10 + 1, quantity == quantity % 10 + 1);
        if (field % 4 == 3) (authorization.deadline, honest) = (deadline + 1, false);
        require(_withdraw(place, quantity, recipient, authorization) == honest, "another message");
    }

    function testFuzz_anAuthorizationEndsAtItsDeadline(uint64 deadline, uint64 later) external {
        Place storage place = _coins(10, Mode.Validium);
        deadline = uint64(block.timestamp) + deadline % 365 days;
        later = uint64(block.timestamp) + later % 730 days;
        address owner = place.vault.owner;
        bytes memory signature = sign(keyOf(owner), place.vault.vaultId, 0, 1, owner, deadline);
        vm.warp(later);
        require(_withdraw(place, 1, owner, Authorization(deadline, signature)) == (later <= deadline), "deadline");
    }

    /// @dev A part by `withdraw`, then the same from a twin vault by a batch.
    function testFuzz_aPackedItemDoesWhatWithdrawDoes(
        uint64 amount, uint64 quantity, address recipient, uint64 deadline, uint8 how, bytes memory garbage, bool rollup
    ) external {
        Mode mode = rollup ? Mode.ZkRollup : Mode.Validium;
        amount = 1 + amount % MAX_AMOUNT;
        if (how & 1 == 0) quantity = 1 + quantity % amount;
        if (how & 2 == 0) deadline = uint64(block.timestamp) + deadline % 1 days;
        (uint256 first, uint256 second) = (_coinsAt(amount, mode), _coinsAt(amount, mode));
        bool single = _withdraw(places[first], quantity, recipient, _authorize(first, quantity, recipient, deadline, how, garbage));
        Authorization memory authorization = _authorize(second, quantity, recipient, deadline, how, garbage);
        Vault memory vault = places[second].vault;
        bytes memory items = Packing.item(vault, places[second].path.siblings, quantity, recipient, authorization);
        address caller = authorization.signature.length == 0 && authorization.deadline == 0 ? vault.owner : address(this);
        expect(_batch(second, items, caller) == (single ? 0 : 1), "another outcome");
        expect(state.withdrawn(vault.vaultId, Standard.ERC20) == (single ? quantity : 0), "another quantity");
        expect(coin.totalSupply() == (single ? 2 : 0) * uint256(quantity) * QUANTUM, "other coins");
    }

    /// @dev One byte of the packed items changed, the end cut off, or bytes put behind or in between.
    function testFuzz_changedItemsAreRefusedByNameOrDoWhatTheirOwnerSigned(uint8 manner, uint256 place, uint8 change, bytes calldata more)
        external
    {
        uint256 which = _coinsAt(10, Mode.ZkRollup);
        Vault memory vault = places[which].vault;
        address recipient = vm.addr(402);
        Authorization memory authorization = _authorize(which, 4, recipient, uint64(block.timestamp), 0, "");
        bytes memory items = Packing.item(vault, places[which].path.siblings, 4, recipient, authorization);
        place %= items.length;
        if (manner % 4 == 0) items[place] ^= bytes1(change);
        if (manner % 4 == 1) items = _part(items, 0, place);
        if (manner % 4 == 2) items = abi.encodePacked(items, more);
        if (manner % 4 == 3) {
            bytes memory body = abi.encodePacked(_part(items, 5, place), more, _part(items, place, items.length));
            if (body.length <= type(uint16).max) items = Packing.framed(vault.vaultId, body);
        }
        _batch(which, items, address(this));
        uint64 out = state.withdrawn(vault.vaultId, Standard.ERC20);
        expect(out == 0 || out == 4, "another quantity");
        expect(coin.balanceOf(recipient) == out * QUANTUM && coin.totalSupply() == out * QUANTUM, "paid to somebody else");
    }

    function testFuzz_randomItemsPayNobody(bytes calldata items, uint8 slot) external {
        uint256 which = _coinsAt(10, Mode.Validium);
        _batch(which, items, address(this));
        if (items.length <= type(uint16).max) _batch(which, Packing.framed(slot % 3, items), address(this));
        expect(coin.totalSupply() == 0, "paid");
    }

    /// @return failed How many items failed; none when the call was refused by name.
    function _batch(uint256 which, bytes memory items, address caller) private returns (uint256 failed) {
        WithdrawalGroup[] memory groups = new WithdrawalGroup[](1);
        groups[0] = groupOf(places[which].batch, assetTypes[0], items);
        vm.prank(caller);
        try state.withdrawBatch(groups, 500_000) returns (uint256 count) {
            return count;
        } catch (bytes memory reason) {
            expect(bytes4(reason) == PackedItems.ItemsMalformed.selector, "refused without saying what is wrong");
        }
    }

    /// @dev The owner's signature; another message's, nobody's, or none, by `how`.
    function _authorize(uint256 which, uint64 quantity, address recipient, uint64 deadline, uint8 how, bytes memory garbage)
        private
        view
        returns (Authorization memory)
    {
        if (how % 7 == 4) return Authorization(0, "");
        if (how % 7 == 5) return Authorization(deadline, garbage);
        uint64 before = how % 7 == 6 ? 1 : 0;
        uint256 key = keyOf(places[which].vault.owner);
        return Authorization(deadline, sign(key, places[which].vault.vaultId, before, quantity, recipient, deadline));
    }

    function _part(bytes memory data, uint256 from, uint256 end) private pure returns (bytes memory part) {
        if (from >= end) return "";
        part = new bytes(end - from);
        for (uint256 i; i < part.length; ++i) part[i] = data[from + i];
    }

    function _coinsAt(uint64 amount, Mode mode) private returns (uint256) {
        _coins(amount, mode);
        return places.length - 2;
    }

    function _coins(uint64 amount, Mode mode) private returns (Place storage) {
        Vault[] memory vaults = vaultsFrom(mode, amount, 3);
        vaults[1] = Vault(vaults[1].vaultId, uint64(block.chainid), vm.addr(ownerKey(amount)), assetTypes[0], amount, "");
        if (mode == Mode.ZkRollup) commitRollup(vaults);
        else commitValidium(vaults);
        return places[places.length - 2];
    }

    /// @dev As the owner when there is no signature, and as this contract otherwise.
    function _withdraw(Place storage place, uint64 quantity, address recipient, Authorization memory authorization)
        private
        returns (bool)
    {
        if (authorization.signature.length == 0 && authorization.deadline == 0) vm.prank(place.vault.owner);
        try state.withdraw(place.vault, batches[place.batch].header, place.path, quantity, recipient, authorization) {
            return true;
        } catch {
            return false;
        }
    }
}
