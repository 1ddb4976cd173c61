// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {Authorization, BatchHeader, Mode, Standard, Vault} from "../../../contracts/interfaces/Model.sol";
import {NaiveTree} from "./NaiveTree.sol";
import {Settlement} from "./Settlement.sol";
import {vm} from "./Vm.sol";

/// @dev Does at random what owners, operators, watchers and thieves do, and keeps the books of what owners asked for.
contract Handler is Settlement {
    uint64 private constant NEVER = type(uint64).max;

    /// @dev What owners have withdrawn, by vault id; the contract must agree.
    mapping(uint64 vaultId => uint64) public asked;
    mapping(uint64 vaultId => bool) public voided;
    /// @dev The first vault of each card, plus one.
    mapping(bytes32 token => uint256) private _firstOf;
    /// @dev Whom a card's first owner let it go to.
    mapping(uint256 tokenId => address) public rightful;
    uint64 public coinsOut;
    uint64 public itemsOut;
    uint256 public cardsOut;
    /// @dev Somebody got what was not theirs, or an owner did not get what was.
    string public complaint;

    // ---- Commits

    function commitRollupBatch(uint256 seed, uint256 count) external {
        Vault[] memory vaults = vaultsFrom(Mode.ZkRollup, seed, 1 + (count % 5));
        commitRollup(vaults);
        _watch(vaults.length);
    }

    function commitValidiumBatch(uint256 seed, uint256 count) external {
        Vault[] memory vaults = vaultsFrom(Mode.Validium, seed, 1 + (count % 5));
        commitValidium(vaults);
        _watch(vaults.length);
    }

    /// @dev Anything the operator, guardian or admin may send, made of random words. What it commits by luck, it would have to prove.
    function privileged(uint256 who, uint256 what, bytes32[5] calldata words) external {
        bytes4[8] memory selectors = [
            state.commitRollupBatch.selector,
            state.commitValidiumBatch.selector,
            state.registerAsset.selector,
            state.cancelAuthorization.selector,
            state.withdraw.selector,
            state.voidDuplicate.selector,
            state.withdrawItem.selector,
            state.pauseCommits.selector
        ];
        address[3] memory actors = [admin, guardian, operator];
        vm.prank(actors[who % 3], actors[who % 3]);
        (bool done,) = address(state).call(abi.encodePacked(selectors[what % 8], words));
        // A pause would end the run's commits: take it back.
        if (done && what % 8 == 7) {
            vm.prank(guardian);
            state.pauseCommits(false);
        }
    }

    function wait(uint256 time) external {
        vm.warp(block.timestamp + (time % (2 * MATURITY)));
    }

    // ---- Withdrawals

    function withdrawByOwner(uint256 which, uint64 quantity, uint256 to) external {
        if (places.length == 0) return;
        Place storage place = places[which % places.length];
        _withdraw(place, _bounded(place, quantity), vm.addr(ownerKey(to)), Authorization(0, ""), place.vault.owner);
    }

    function withdrawBySignature(uint256 which, uint64 quantity, uint256 to) external {
        if (places.length == 0) return;
        Place storage place = places[which % places.length];
        uint64 amount = _bounded(place, quantity);
        address recipient = vm.addr(ownerKey(to));
        uint64 before = standardOf(place.vault) == Standard.ERC721 ? 0 : asked[place.vault.vaultId];
        bytes memory signature = sign(keyOf(place.vault.owner), place.vault.vaultId, before, amount, recipient, NEVER);
        _withdraw(place, amount, recipient, Authorization(NEVER, signature), address(this));
    }

    /// @dev Every way to withdraw without the owner: uninvited, with another's signature, or with a stale one of the owner.
    function steal(uint256 which, uint64 quantity, uint256 thief, uint256 how) external {
        if (places.length == 0) return;
        Place storage place = places[which % places.length];
        address caller = vm.addr(401 + (thief % 3));
        bytes memory signature;
        if (how % 3 == 1) signature = sign(401 + (thief % 3), place.vault.vaultId, asked[place.vault.vaultId], quantity, caller, NEVER);
        if (how % 3 == 2) {
            uint64 stale = asked[place.vault.vaultId] + 1 + uint64(how % 7);
            signature = sign(keyOf(place.vault.owner), place.vault.vaultId, stale, quantity, caller, NEVER);
        }
        vm.prank(caller);
        try state.withdraw(place.vault, batches[place.batch].header, place.path, quantity, caller, Authorization(NEVER, signature)) {
            complaint = "a thief has withdrawn";
        } catch {}
    }

    /// @dev Withdraws from a vault that differs from a committed one by one field.
    function forge(uint256 which, uint256 field, uint64 change) external {
        if (places.length == 0 || change == 0) return;
        Place memory place = places[which % places.length];
        Vault memory vault = place.vault;
        if (field % 5 == 0) vault.amount ^= change;
        if (field % 5 == 1) vault.owner = vm.addr(402);
        if (field % 5 == 2) vault.blob = abi.encodePacked(vault.blob, bytes1(0x31));
        if (field % 5 == 3) vault.vaultId ^= change;
        if (field % 5 == 4) vault.assetType ^= change;
        vm.prank(vault.owner);
        try state.withdraw(vault, batches[place.batch].header, place.path, 1, vault.owner, Authorization(0, "")) {
            complaint = "a vault that nobody has committed was withdrawn";
        } catch {}
    }

    // ---- What the invariants look at

    function headersHold() external view returns (bool) {
        uint64[2] memory numbers;
        for (uint256 i; i < batches.length; ++i) {
            Batch storage batch = batches[i];
            uint64 number = numbers[uint8(batch.mode)]++;
            BatchHeader memory header = batch.header;
            bytes32 expected = keccak256(
                abi.encodePacked(uint8(4), header.batchRoot, header.vaultCount, header.committedAt, header.sequence)
            );
            if (batch.headerHash != expected || state.batchHeaderHash(batch.mode, number) != expected) return false;
        }
        return true;
    }

    /// @dev The state root is that of all batches ever committed, in their order: no past one has moved.
    function rootsHold() external view returns (bool) {
        bytes32 validium = NaiveTree.root(stateLeaves[Mode.Validium], 32);
        bytes32 rollup = NaiveTree.root(stateLeaves[Mode.ZkRollup], 32);
        return state.stateRoot(Mode.Validium) == validium && state.stateRoot(Mode.ZkRollup) == rollup;
    }

    function vaultsHold() external view returns (bool) {
        for (uint256 i; i < places.length; ++i) {
            Vault storage vault = places[i].vault;
            uint64 out = state.withdrawn(vault.vaultId, standardOf(vault));
            uint64 expected = voided[vault.vaultId] ? 1 : asked[vault.vaultId];
            if (out != expected || out > vault.amount) return false;
        }
        return true;
    }

    function supplyHolds() external view returns (bool) {
        uint256 items;
        uint256 cards;
        for (uint256 id; id < 8; ++id) {
            items += item.totalSupply(id);
            address owner = address(0);
            try card.ownerOf(id) returns (address found) {
                owner = found;
                ++cards;
            } catch {}
            if (owner != rightful[id]) return false;
        }
        return coin.totalSupply() == uint256(coinsOut) * QUANTUM && items == itemsOut && cards == cardsOut;
    }

    function committed() external view returns (uint256) {
        return batches.length;
    }

    // ---- Inside

    /// @dev A watcher: of every card that is in the new batch and was minted before, it voids the later vault at once.
    function _watch(uint256 count) private {
        for (uint256 i = places.length - count; i < places.length; ++i) {
            Place storage place = places[i];
            if (standardOf(place.vault) != Standard.ERC721) continue;
            bytes32 token = keccak256(place.vault.blob);
            uint256 first = _firstOf[token];
            if (first == 0) {
                _firstOf[token] = i + 1;
                continue;
            }
            Place storage earlier = places[first - 1];
            try state.voidDuplicate(
                place.vault, batches[place.batch].header, place.path, earlier.vault, batches[earlier.batch].header, earlier.path
            ) {
                complaint = "the earlier of two was voided";
            } catch {}
            state.voidDuplicate(
                earlier.vault, batches[earlier.batch].header, earlier.path, place.vault, batches[place.batch].header, place.path
            );
            voided[place.vault.vaultId] = true;
        }
    }

    function _bounded(Place storage place, uint64 quantity) private view returns (uint64) {
        if (standardOf(place.vault) == Standard.ERC721) return 1;
        // Now and then more than there is.
        return 1 + quantity % (place.vault.amount + 2);
    }

    function _withdraw(Place storage place, uint64 quantity, address recipient, Authorization memory authorization, address caller) private {
        Vault memory vault = place.vault;
        BatchHeader memory header = batches[place.batch].header;
        bool isCard = standardOf(vault) == Standard.ERC721;
        bool allowed = asked[vault.vaultId] + quantity <= vault.amount && !voided[vault.vaultId]
            && (!isCard || block.timestamp >= header.committedAt + MATURITY);
        vm.prank(caller);
        try state.withdraw(vault, header, place.path, quantity, recipient, authorization) {
            if (!allowed) complaint = "more was withdrawn than the vault holds, or too early";
            asked[vault.vaultId] += quantity;
            if (isCard) {
                ++cardsOut;
                rightful[uint8(vault.blob[0]) - 0x30] = recipient;
            } else if (standardOf(vault) == Standard.ERC20) {
                coinsOut += quantity;
            } else {
                itemsOut += quantity;
            }
        } catch {
            if (allowed) complaint = "an owner was refused";
        }
    }
}
