// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {Authorization, Mode, Standard, Vault} from "../../contracts/interfaces/Model.sol";
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
        try state.withdraw(place.vault, batches[place.batch].header, place.siblings, quantity, recipient, authorization) {
            return true;
        } catch {
            return false;
        }
    }
}
