// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {ICommittee} from "../../../contracts/interfaces/ICommittee.sol";
import {MirrorStep} from "../../../contracts/interfaces/IStateMirror.sol";
import {IVaultProofs} from "../../../contracts/interfaces/IVaultProofs.sol";
import {IWithdrawals} from "../../../contracts/interfaces/IWithdrawals.sol";
import {Authorization, BatchHeader, Standard, Vault} from "../../../contracts/interfaces/Model.sol";
import {expect} from "./Expect.sol";
import {MirrorRelayers} from "./MirrorRelayers.sol";
import {vm} from "./Vm.sol";

/// @dev What owners and thieves do besides at a mirror while the administration changes its committee, and what must hold all the time.
contract MirrorHandler is MirrorRelayers {
    enum How {
        OwnerCalls,
        OwnerSigns,
        StrangerCalls,
        StrangerSigns,
        OwnerSignsForTheSource,
        OwnerSignsForItsChain,
        OwnerSignsAnotherCount
    }

    uint256 public withdrawals;
    uint256 public voids;
    /// @dev By place: quantized units paid out.
    mapping(uint256 place => uint64) private _paid;
    mapping(uint256 place => bool) private _voided;
    /// @dev The first vault of each card, plus one; of the places that the watcher has seen.
    mapping(bytes32 blobHash => uint256) private _firstOf;
    uint256 private _watched;
    mapping(uint256 tokenId => address) private _rightful;

    // ---- Time and administration

    /// @dev The same members, of whom another number must sign, in the next epoch.
    function changeCommittee(uint8 next) external {
        next = 1 + next % uint8(MEMBERS);
        vm.prank(admin);
        mirror.scheduleCommittee(members, next);
        mustRefuse(abi.encodeCall(mirror.activateCommittee, (members, next)), ICommittee.ChangeNotDue.selector);
        _pass(CHANGE_DELAY);
        mirror.activateCommittee(members, next);
        (threshold, epoch) = (next, epoch + 1);
    }

    function wait(uint256 time) external {
        _pass(time % (2 * MATURITY));
    }

    // ---- Owners and thieves

    function withdraw(uint256 which, uint64 quantity, uint8 manner, address recipient) external {
        if (places.length == 0) return;
        which %= places.length;
        if (recipient == address(0) || recipient.code.length != 0) recipient = places[which].vault.owner;
        // Half of the quantities are exactly what is left.
        if (quantity % 2 == 0) quantity = places[which].vault.amount - _paid[which];
        How how = How(manner % 7);
        address caller = how == How.OwnerCalls ? places[which].vault.owner : stranger;
        bytes memory call = _withdrawal(which, quantity, recipient, how);
        bytes4 name = _refusal(which, quantity, how);
        if (name != 0) return mustRefuse(caller, call, name);
        vm.prank(caller);
        (bool done,) = address(mirror).call(call);
        expect(done, "an owner was refused");
        ++withdrawals;
        _paid[which] += quantity;
        Vault storage vault = places[which].vault;
        if (standardOf(vault) == Standard.ERC721) _rightful[uint8(vault.blob[0]) - 0x30] = recipient;
        if (how == How.OwnerSigns) mustRefuse(caller, call, _refusalOfReplay(which, quantity));
    }

    // ---- What must hold after every action

    function checkState() external view {
        expect(mirror.commitment() == commitmentOf(present, SOURCE_CHAIN, SOURCE), "not the state that was accepted");
        expect(mirror.stepCount() == steps.length, "a step too many or too few");
        uint64[2] memory counts;
        for (uint64 i; i < steps.length; ++i) {
            MirrorStep memory step = mirror.step(i);
            expect(keccak256(abi.encode(step)) == keccak256(abi.encode(steps[i])), "a step has changed");
            expect(step.first == counts[uint8(step.mode)] && step.count > step.first, "a step does not grow the state");
            counts[uint8(step.mode)] = step.count;
        }
    }

    function checkHeaders() external view {
        for (uint256 i; i < batches.length; ++i) {
            SourceBatch memory batch = batches[i];
            BatchHeader memory header = headerOf(batch, i);
            bytes32 known = keccak256(
                abi.encodePacked(uint8(4), header.batchRoot, header.vaultCount, header.committedAt, header.sequence)
            );
            expect(mirror.batchHeaderHash(batch.mode, batch.number) == (batch.imported ? known : bytes32(0)), "a header has changed");
        }
    }

    function checkVaults() external view {
        for (uint256 i; i < places.length; ++i) {
            Vault storage vault = places[i].vault;
            uint64 out = mirror.withdrawn(vault.vaultId, standardOf(vault));
            expect(out == (_voided[i] ? 1 : _paid[i]) && out <= vault.amount, "a vault has paid something else");
            expect(out == 0 || vault.chainId == block.chainid, "paid for a token of another chain");
        }
    }

    function checkSupplies() external view {
        uint256[4] memory paid;
        for (uint256 i; i < places.length; ++i) paid[uint8(standardOf(places[i].vault))] += _paid[i];
        expect(coin.totalSupply() == paid[uint8(Standard.ERC20)] * QUANTUM, "coins minted are not those withdrawn");
        expect(item.totalSupply() == paid[uint8(Standard.ERC1155)], "items minted are not those withdrawn");
        uint256 cards;
        for (uint256 id; id < 8; ++id) {
            address owner = address(0);
            try card.ownerOf(id) returns (address found) {
                owner = found;
                ++cards;
            } catch {}
            expect(owner == _rightful[id], "a card is not its first owner's");
        }
        expect(cards == paid[uint8(Standard.ERC721)], "cards minted are not those withdrawn");
    }

    // ---- Inside

    /// @dev Before time passes, somebody has looked at what is new: imported it, and voided each later vault of a card.
    function _pass(uint256 time) private {
        for (uint256 i; i < accepted; ++i) if (!batches[i].imported) importOne(i);
        for (; _watched < places.length && places[_watched].batch < accepted; ++_watched) {
            Vault storage vault = places[_watched].vault;
            if (standardOf(vault) != Standard.ERC721 || vault.chainId != block.chainid) continue;
            bytes32 blobHash = keccak256(vault.blob);
            if (_firstOf[blobHash] == 0) _firstOf[blobHash] = _watched + 1;
            else _void(_firstOf[blobHash] - 1, _watched);
        }
        vm.warp(block.timestamp + time);
    }

    function _void(uint256 earlier, uint256 later) private {
        mustRefuse(_voiding(later, earlier), IVaultProofs.NotDuplicates.selector);
        (bool done,) = address(mirror).call(_voiding(earlier, later));
        expect(done, "a duplicate was not voided");
        mustRefuse(_voiding(earlier, later), IVaultProofs.VaultExhausted.selector);
        _voided[later] = true;
        ++voids;
    }

    function _voiding(uint256 earlier, uint256 later) private view returns (bytes memory) {
        Place memory first = places[earlier];
        Place memory second = places[later];
        BatchHeader memory header = headerOf(batches[first.batch], first.batch);
        BatchHeader memory laterHeader = headerOf(batches[second.batch], second.batch);
        return abi.encodeCall(
            mirror.voidDuplicate, (first.vault, header, first.path, second.vault, laterHeader, second.path)
        );
    }

    function _withdrawal(uint256 which, uint64 quantity, address recipient, How how) private view returns (bytes memory) {
        Place memory place = places[which];
        Authorization memory authorization;
        if (how != How.OwnerCalls && how != How.StrangerCalls) {
            uint64 before = standardOf(place.vault) == Standard.ERC721 ? 0 : _paid[which];
            if (how == How.OwnerSignsAnotherCount) ++before;
            uint64 deadline = uint64(block.timestamp);
            bytes32 message = withdrawalHash(place.vault.vaultId, before, quantity, recipient, deadline);
            bytes32 digest = typedDigest(message);
            if (how == How.OwnerSignsForTheSource) digest = typedDigest(message, SOURCE_CHAIN, SOURCE);
            if (how == How.OwnerSignsForItsChain) digest = typedDigest(message, SOURCE_CHAIN, address(mirror));
            uint256 key = how == How.StrangerSigns ? STRANGER_KEY : keyOf(place.vault.owner);
            authorization = Authorization(deadline, sign(key, digest));
        }
        BatchHeader memory header = headerOf(batches[place.batch], place.batch);
        return abi.encodeCall(mirror.withdraw, (place.vault, header, place.path, quantity, recipient, authorization));
    }

    /// @dev The name of the first rule that a withdrawal breaks; 0 if it breaks none.
    function _refusal(uint256 which, uint64 quantity, How how) private view returns (bytes4) {
        Vault storage vault = places[which].vault;
        SourceBatch storage batch = batches[places[which].batch];
        bool isCard = standardOf(vault) == Standard.ERC721;
        if (quantity == 0) return IWithdrawals.QuantityZero.selector;
        if (!batch.imported) return IVaultProofs.HeaderMismatch.selector;
        if (vault.chainId != block.chainid) return IWithdrawals.OtherChain.selector;
        if (isCard && block.timestamp < steps[batch.step].acceptedAt + MATURITY) return IWithdrawals.NotMature.selector;
        if (isCard && quantity != 1) return IWithdrawals.QuantityTooLarge.selector;
        if (_voided[which] || _paid[which] == vault.amount) return IVaultProofs.VaultExhausted.selector;
        if (quantity > vault.amount - _paid[which]) return IWithdrawals.QuantityTooLarge.selector;
        if (how == How.StrangerCalls) return IWithdrawals.NotOwner.selector;
        if (how != How.OwnerCalls && how != How.OwnerSigns) return IWithdrawals.SignatureInvalid.selector;
        return 0;
    }

    function _refusalOfReplay(uint256 which, uint64 quantity) private view returns (bytes4) {
        uint64 left = places[which].vault.amount - _paid[which];
        if (left == 0) return IVaultProofs.VaultExhausted.selector;
        return quantity > left ? IWithdrawals.QuantityTooLarge.selector : IWithdrawals.SignatureInvalid.selector;
    }
}
