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

    /// @dev Vaults of one owner and of others, listed in any order, used in any order, and twice: each pays once, if it is its owner's.
    function testFuzz_aListPaysItsOwnersVaultsOnce(uint64[5] memory amounts, uint64[5] memory parts, uint8[8] memory order, bool rollup) external {
        address owner = vm.addr(ownerKey(0));
        (uint64[3][] memory entries, uint256[] memory which) = _entries(amounts, parts, rollup ? Mode.ZkRollup : Mode.Validium);
        bytes[] memory lists = _signedList(entries, vm.addr(402), 0);
        uint256 paid;
        bool[5] memory done;
        for (uint256 i; i < order.length; ++i) {
            uint16 position = order[i] % 5;
            Place storage place = places[which[position]];
            uint256 failed = _listed(which[position], Packing.listed(place.vault, place.path.siblings, 0, position), lists);
            bool pays = !done[position] && place.vault.owner == owner && entries[position][1] == 0;
            expect(failed == (pays ? 0 : 1), "another outcome");
            if (pays) (done[position], paid) = (true, paid + entries[position][2]);
            expect(coin.balanceOf(vm.addr(402)) == paid * QUANTUM && coin.totalSupply() == paid * QUANTUM, "other coins");
        }
    }

    /// @dev Any byte of the list or of the item changed, or the end cut off: nobody else is paid, and nobody more.
    function testFuzz_aChangedListPaysNobodyElse(uint8 manner, uint256 offset, uint8 change, bytes calldata more) external {
        uint64[5] memory amounts;
        (uint64[3][] memory entries, uint256[] memory which) = _entries(amounts, amounts, Mode.ZkRollup);
        bytes[] memory lists = _signedList(entries, vm.addr(402), 0);
        Place storage place = places[which[0]];
        bytes memory item = Packing.listed(place.vault, place.path.siblings, 0, 0);
        if (manner % 4 == 0) lists[0][offset % lists[0].length] ^= bytes1(change);
        if (manner % 4 == 1) lists[0] = _part(lists[0], 0, offset % lists[0].length);
        if (manner % 4 == 2) item[offset % item.length] ^= bytes1(change);
        if (manner % 4 == 3) item = Packing.framed(place.vault.vaultId, abi.encodePacked(_part(item, 5, offset % item.length), more));
        _listed(which[0], item, lists);
        uint64 out = state.withdrawn(place.vault.vaultId, Standard.ERC20);
        expect(out == 0 || out == 1, "another quantity");
        expect(coin.balanceOf(vm.addr(402)) == out * QUANTUM && coin.totalSupply() == out * QUANTUM, "paid to somebody else");
    }

    function testFuzz_aListIsForOneMessage(uint8 field, uint64 other, uint64 later) external {
        uint64[5] memory amounts;
        (uint64[3][] memory entries, uint256[] memory which) = _entries(amounts, amounts, Mode.Validium);
        uint64 deadline = uint64(block.timestamp) + 1 days;
        bytes memory signature = sign(ownerKey(0), typedDigest(listHash(entries, vm.addr(402), deadline)));
        (address recipient, address owner) = (vm.addr(402), vm.addr(ownerKey(0)));
        bool honest = true;
        if (field % 6 == 1) (recipient, honest) = (vm.addr(403), false);
        if (field % 6 == 2) (deadline, honest) = (deadline + 1, false);
        if (field % 6 == 3) (owner, honest) = (vm.addr(ownerKey(1)), false);
        if (field % 6 == 4) (entries[1 + other % 4][1 + other % 2], honest) = (other | 2, false);
        if (field % 6 == 5) {
            vm.warp(block.timestamp + later % 2 days);
            honest = block.timestamp <= deadline;
        }
        bytes[] memory lists = new bytes[](1);
        lists[0] = Packing.list(owner, recipient, deadline, _pack(entries), signature);
        Place storage place = places[which[0]];
        uint256 failed = _listed(which[0], Packing.listed(place.vault, place.path.siblings, 0, 0), lists);
        expect(failed == (honest ? 0 : 1) && coin.totalSupply() == (honest ? QUANTUM : 0), "another message");
    }

    /// @dev Five vaults, the first one its owner's, who signs; some with a total that is not so.
    function _entries(uint64[5] memory amounts, uint64[5] memory parts, Mode mode)
        private
        returns (uint64[3][] memory entries, uint256[] memory which)
    {
        (entries, which) = (new uint64[3][](5), new uint256[](5));
        for (uint256 i; i < 5; ++i) {
            uint64 amount = i == 0 ? 4 : 4 + amounts[i] % (MAX_AMOUNT - 4);
            if (amounts[i] % 3 == 0) amount = amount / 4 * 4;
            which[i] = _coinsAt(amount, mode);
            entries[i] = [places[which[i]].vault.vaultId, i != 0 && parts[i] % 5 == 1 ? 1 : 0, 1 + parts[i] % amount];
        }
    }

    function _signedList(uint64[3][] memory entries, address recipient, uint256 owner) private view returns (bytes[] memory lists) {
        uint64 deadline = uint64(block.timestamp);
        bytes memory signature = sign(ownerKey(owner), typedDigest(listHash(entries, recipient, deadline)));
        lists = new bytes[](1);
        lists[0] = Packing.list(vm.addr(ownerKey(owner)), recipient, deadline, _pack(entries), signature);
    }

    function _pack(uint64[3][] memory entries) private pure returns (bytes memory packed) {
        for (uint256 i; i < entries.length; ++i) packed = abi.encodePacked(packed, entries[i][0], entries[i][1], entries[i][2]);
    }

    /// @return failed How many items failed; none when the call was refused by name.
    function _batch(uint256 which, bytes memory items, address caller) private returns (uint256 failed) {
        return _send(which, items, new bytes[](0), caller);
    }

    function _listed(uint256 which, bytes memory items, bytes[] memory lists) private returns (uint256 failed) {
        return _send(which, items, lists, address(this));
    }

    function _send(uint256 which, bytes memory items, bytes[] memory lists, address caller) private returns (uint256 failed) {
        WithdrawalGroup[] memory groups = new WithdrawalGroup[](1);
        groups[0] = groupOf(places[which].batch, assetTypes[0], items);
        vm.prank(caller);
        try state.withdrawBatch(groups, lists, 500_000) returns (uint256 count) {
            return count;
        } catch (bytes memory reason) {
            bytes4 said = bytes4(reason);
            bool named = said == PackedItems.ItemsMalformed.selector || said == PackedItems.ListMalformed.selector;
            expect(named, "refused without saying what is wrong");
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
