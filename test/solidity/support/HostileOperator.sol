// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {Authorization, BatchHeader, Mode, Standard, Vault, WithdrawalGroup} from "../../../contracts/interfaces/Model.sol";
import {MintingBlob} from "../../../contracts/libraries/MintingBlob.sol";
import {expect} from "./Expect.sol";
import {Manifests} from "./Manifests.sol";
import {NaiveTree} from "./NaiveTree.sol";
import {Packing} from "./Packing.sol";
import {Settlement} from "./Settlement.sol";
import {vm} from "./Vm.sol";

/// @dev What an operator can do who has the committee on its side, and the administration meanwhile; owners withdraw what there is, and
/// someone watches. Each action knows by a model whether it must succeed, and insists on it.
contract HostileOperator is Settlement {
    enum How {
        OwnerCalls,
        OwnerSigns,
        StrangerCalls,
        StrangerSigns,
        OwnerSignedForAnotherRecipient,
        OwnerSignedAnotherQuantity,
        SignatureExpired,
        SignatureCancelled,
        OwnerSignsList,
        StrangerSignsList,
        OwnerSignedListForAnotherRecipient,
        OwnerSignedListAfterAnotherTotal,
        ListCancelled
    }

    uint64 private constant CHANGE_DELAY = 1 days;
    uint256 private constant MAX_AMOUNT = uint64(type(int64).max);
    uint256 private constant STRANGER_KEY = 401;

    address private immutable _stranger = vm.addr(STRANGER_KEY);

    uint256 public withdrawals;
    uint256 public voids;
    /// @dev By place: quantized units paid out.
    mapping(uint256 place => uint64) private _paid;
    /// @dev By place: full without having been paid.
    mapping(uint256 place => bool) private _voided;
    address[] private _holders;
    bool private _paused;
    bool private _revoked;
    /// @dev 0: not announced.
    uint64 private _returnsAt;
    /// @dev Of coins, cards and items; 0: not announced.
    uint64[3] private _issuerDue;

    constructor() {
        vm.warp(1_800_000_000);
    }

    // ---- The operator

    function commitRollupBatch(uint256 seed, uint256 count, uint8 consenting) external {
        if (_paused || _revoked) return;
        commitRollup(vaultsFrom(Mode.ZkRollup, seed, 1 + count % 5), _how(consenting));
        _watch(1 + count % 5);
    }

    /// @dev Nobody but the committee looks into the vaults, and here it does not.
    function commitValidiumBatch(uint256 seed, uint256 count, bool spoiled, uint8 consenting) external {
        if (_paused || _revoked) return;
        Vault[] memory vaults = vaultsFrom(Mode.Validium, seed, 1 + count % 5);
        for (uint256 i; spoiled && i < vaults.length; ++i) _spoil(vaults[i], uint256(keccak256(abi.encode(seed, "spoiled", i))));
        commitValidium(vaults, _how(consenting));
        _watch(1 + count % 5);
    }

    /// @dev Half of the batches have the issuer's consent.
    function _how(uint8 consenting) private pure returns (Consenting) {
        return Consenting(consenting < 128 ? 0 : consenting % 8);
    }

    /// @dev An old batch number, or one of the future: neither replaces nor skips anything.
    function commitOutOfTurn(uint64 number, bool asRollup) external {
        number %= 16;
        if (number == nextNumber(asRollup ? Mode.ZkRollup : Mode.Validium)) return;
        expect(!_commits(operator, number, asRollup), "committed out of turn");
    }

    function commitWithoutTheRight(bool asRollup) external {
        uint64 number = nextNumber(asRollup ? Mode.ZkRollup : Mode.Validium);
        address caller = _paused || _revoked ? operator : _stranger;
        expect(!_commits(caller, number, asRollup), "committed without the right to");
    }

    // ---- Owners, those who would like to be, and watchers

    function withdraw(uint256 which, uint64 quantity, uint8 manner, address recipient) external {
        if (places.length == 0) return;
        which %= places.length;
        Vault storage vault = places[which].vault;
        How how = How(manner % 13);
        // Half of the quantities are exactly what is left.
        if (quantity % 2 == 0) quantity = vault.amount - _paid[which];
        if (recipient.code.length != 0 || recipient == address(0)) recipient = vault.owner;
        bool willing = how == How.OwnerCalls || how == How.OwnerSigns || how == How.OwnerSignsList;
        bool allowed = willing && _canPay(which, quantity);
        (bool paid, bytes memory reason) = how < How.OwnerSignsList
            ? _attempt(which, quantity, recipient, how)
            : _attemptListed(which, quantity, recipient, how);
        expect(paid == allowed, allowed ? "a rightful withdrawal is refused" : "a wrongful withdrawal is paid");
        expect(paid || reason.length >= 4, "refused without a name");
        if (!paid) return;
        if (standardOf(vault) == Standard.ERC721) {
            expect(card.ownerOf(MintingBlob.tokenId(vault.blob)) == recipient, "a card went to somebody else");
        }
        _paid[which] += quantity;
        _holders.push(recipient);
        ++withdrawals;
    }

    /// @dev Withdraws from a vault that differs from a committed one by one field.
    function forge(uint256 which, uint256 field, uint64 change) external {
        if (places.length == 0 || change == 0) return;
        Place memory place = places[which % places.length];
        Vault memory vault = place.vault;
        if (field % 5 == 0) vault.amount ^= change;
        if (field % 5 == 1) vault.owner = _stranger;
        if (field % 5 == 2) vault.blob = abi.encodePacked(vault.blob, bytes1(0x31));
        if (field % 5 == 3) vault.vaultId ^= change;
        if (field % 5 == 4) vault.assetType ^= change;
        vm.prank(vault.owner);
        try state.withdraw(vault, batches[place.batch].header, place.path, 1, vault.owner, Authorization(0, "")) {
            expect(false, "a vault that nobody has committed was withdrawn");
        } catch {}
    }

    /// @dev A duplicate pair in either order, or two vaults that have nothing to do with one another.
    function voidDuplicate(uint256 first, uint256 second) external {
        if (places.length != 0) _void(first % places.length, second % places.length);
    }

    // ---- Time and administration

    function wait(uint32 time) external {
        vm.warp(block.timestamp + time % (3 * MATURITY));
    }

    function pause(bool paused) external {
        vm.prank(paused ? guardian : admin);
        state.pauseCommits(paused);
        _paused = paused;
    }

    function revokeOperator(uint8 chance) external {
        if (chance % 4 != 0) return;
        vm.prank(guardian);
        state.revokeOperator(operator);
        (_revoked, _returnsAt) = (true, 0);
    }

    function scheduleOperator() external {
        if (!_revoked) return;
        vm.prank(admin);
        state.scheduleOperator(operator);
        _returnsAt = uint64(block.timestamp) + CHANGE_DELAY;
    }

    function activateOperator(bool waits) external {
        if (waits && _returnsAt > block.timestamp) vm.warp(_returnsAt);
        bool due = _returnsAt != 0 && block.timestamp >= _returnsAt;
        try state.activateOperator(operator) {
            expect(due, "an operator came before its time");
            (_revoked, _returnsAt) = (false, 0);
        } catch {
            expect(!due, "an operator was kept out after its time");
        }
    }

    /// @dev Of cards or of items.
    function suspendIssuer(uint256 kind, uint8 chance) external {
        if (chance % 4 != 0) return;
        kind = 1 + kind % 2;
        vm.prank(admin);
        state.suspendIssuer(_tokenOf(kind));
        (suspended[kind], issuerEpochs[kind]) = (true, issuerEpochs[kind] + 1);
    }

    /// @dev The same issuer anew, after the delay.
    function scheduleIssuer(uint256 kind) external {
        kind = 1 + kind % 2;
        vm.prank(admin);
        state.scheduleIssuer(_tokenOf(kind), vm.addr(ISSUER_KEY));
        _issuerDue[kind] = uint64(block.timestamp) + CHANGE_DELAY;
    }

    function activateIssuer(uint256 kind, bool waits) external {
        kind = 1 + kind % 2;
        if (waits && _issuerDue[kind] > block.timestamp) vm.warp(_issuerDue[kind]);
        bool due = _issuerDue[kind] != 0 && block.timestamp >= _issuerDue[kind];
        vm.prank(admin);
        try state.activateIssuer(_tokenOf(kind)) {
            expect(due, "an issuer came before its time");
            (suspended[kind], issuerEpochs[kind], _issuerDue[kind]) = (false, issuerEpochs[kind] + 1, 0);
        } catch {
            expect(!due, "an issuer was kept out after its time");
        }
    }

    /// @dev Anything that operator, guardian or admin may send, made of random words.
    function privileged(uint256 who, uint256 what, bytes32[5] calldata words) external {
        bytes4[7] memory selectors = [
            state.commitRollupBatch.selector,
            state.commitValidiumBatch.selector,
            state.registerAsset.selector,
            state.cancelAuthorization.selector,
            state.withdraw.selector,
            state.voidDuplicate.selector,
            state.withdrawItem.selector
        ];
        address[3] memory actors = [admin, guardian, operator];
        vm.prank(actors[who % 3], actors[who % 3]);
        (bool done,) = address(state).call(abi.encodePacked(selectors[what % 7], words));
        expect(!done || what % 7 == 2 || what % 7 == 3, "random words were taken");
    }

    function administrateWithoutTheRight(uint8 which, address member) external {
        address[] memory members = new address[](1);
        members[0] = member;
        bytes[10] memory calls = [
            abi.encodeCall(state.pauseCommits, (true)),
            abi.encodeCall(state.scheduleOperator, (member)),
            abi.encodeCall(state.revokeOperator, (operator)),
            abi.encodeCall(state.scheduleCommittee, (members, 1)),
            abi.encodeCall(state.activateCommittee, (members, 1)),
            abi.encodeCall(state.grantRole, (state.OPERATOR_ROLE(), member)),
            abi.encodeCall(state.suspendIssuer, (address(card))),
            abi.encodeCall(state.scheduleIssuer, (address(card), member)),
            abi.encodeCall(state.activateIssuer, (address(card))),
            abi.encodeCall(state.cancelIssuer, (address(item)))
        ];
        vm.prank(_stranger);
        (bool done,) = address(state).call(calls[which % 10]);
        expect(!done, "administrated without the right to");
    }

    // ---- What must hold after every action

    function checkHeaders() external view {
        uint64[2] memory numbers;
        for (uint256 i; i < batches.length; ++i) {
            Mode mode = batches[i].mode;
            bytes32 stored = state.batchHeaderHash(mode, numbers[uint8(mode)]++);
            expect(stored == batches[i].headerHash, "a committed batch has changed");
        }
        expect(nextNumber(Mode.Validium) == numbers[0] && nextNumber(Mode.ZkRollup) == numbers[1], "a batch too many or too few");
    }

    /// @dev The state roots are those of all batches ever committed, in their order: no past one has moved.
    function checkRoots() external view {
        for (uint8 mode; mode < 2; ++mode) {
            bytes32 root = NaiveTree.root(stateLeaves[Mode(mode)], 32);
            expect(state.stateRoot(Mode(mode)) == root, "a state root is not that of the batches committed");
        }
    }

    function checkVaults() external view {
        for (uint256 i; i < places.length; ++i) {
            Vault storage vault = places[i].vault;
            Standard standard = standardOf(vault);
            if (standard == Standard.None) continue;
            expect(state.withdrawn(vault.vaultId, standard) == (_voided[i] ? 1 : _paid[i]), "not what was withdrawn");
            expect(_paid[i] <= vault.amount, "more than the vault held");
        }
    }

    function checkSupplies() external view {
        uint256[4] memory paid;
        for (uint256 i; i < places.length; ++i) paid[uint8(standardOf(places[i].vault))] += _paid[i];
        expect(coin.totalSupply() == paid[uint8(Standard.ERC20)] * QUANTUM, "coins minted are not those withdrawn");
        expect(item.totalSupply() == paid[uint8(Standard.ERC1155)], "items minted are not those withdrawn");
        uint256 owned;
        for (uint256 i; i < _holders.length; ++i) {
            bool counted;
            for (uint256 j; j < i; ++j) counted = counted || _holders[j] == _holders[i];
            if (!counted) owned += card.balanceOf(_holders[i]);
        }
        expect(owned == paid[uint8(Standard.ERC721)], "cards minted are not those withdrawn");
    }

    /// @dev Of two vaults of one ERC-721 token the later one is never paid, as long as anyone watches.
    function checkEarliestWins() external view {
        for (uint256 later; later < places.length; ++later) {
            if (_paid[later] == 0) continue;
            for (uint256 earlier; earlier < later; ++earlier) {
                expect(!_isDuplicate(earlier, later), "a later duplicate was paid");
            }
        }
    }

    // ---- Inside

    function _tokenOf(uint256 kind) private view returns (address) {
        return kind == 1 ? address(card) : address(item);
    }

    function _commits(address caller, uint64 number, bool asRollup) private returns (bool done) {
        bytes memory call = asRollup
            ? abi.encodeCall(state.commitRollupBatch, (state.history(), "", number, hex"010000_0000_ffff000002"))
            : abi.encodeCall(
                state.commitValidiumBatch,
                (state.history(), number, bytes32("content"), 1, "data", "", attest(number, _rootOf("content"), 1, "data"), "")
            );
        vm.prank(caller, caller);
        (done,) = address(state).call(call);
    }

    /// @dev Of a validium batch without assets.
    function _rootOf(bytes32 content) private pure returns (bytes32) {
        return Manifests.batchRoot(Mode.Validium, new bytes32[](0), content);
    }

    function _attempt(uint256 which, uint64 quantity, address recipient, How how) private returns (bool, bytes memory) {
        Place memory place = places[which];
        Authorization memory authorization;
        if (how != How.OwnerCalls && how != How.StrangerCalls) authorization = _authorization(which, quantity, recipient, how);
        bytes memory call = abi.encodeCall(
            state.withdraw, (place.vault, batches[place.batch].header, place.path, quantity, recipient, authorization)
        );
        vm.prank(how == How.OwnerCalls ? place.vault.owner : _stranger);
        return address(state).call(call);
    }

    /// @dev Anyone sends the vault as the second of a list's two entries.
    function _attemptListed(uint256 which, uint64 quantity, address recipient, How how) private returns (bool, bytes memory) {
        Place memory place = places[which];
        uint64 deadline = uint64(block.timestamp);
        uint64[3][] memory entries = new uint64[3][](2);
        entries[0] = [uint64(1), 0, 1];
        entries[1] = [place.vault.vaultId, _paid[which] + (how == How.OwnerSignedListAfterAnotherTotal ? 1 : 0), quantity];
        bytes memory packed = abi.encodePacked(
            entries[0][0], entries[0][1], entries[0][2], entries[1][0], entries[1][1], entries[1][2]
        );
        if (how == How.ListCancelled) {
            vm.prank(place.vault.owner);
            state.cancelList(packed, recipient, deadline);
        }
        address signedFor = how == How.OwnerSignedListForAnotherRecipient ? address(uint160(recipient) ^ 1) : recipient;
        uint256 key = how == How.StrangerSignsList ? STRANGER_KEY : keyOf(place.vault.owner);
        bytes memory signature = sign(key, typedDigest(listHash(entries, signedFor, deadline)));
        bytes[] memory lists = new bytes[](1);
        lists[0] = Packing.list(place.vault.owner, recipient, deadline, packed, signature);
        WithdrawalGroup[] memory groups = new WithdrawalGroup[](1);
        bytes memory items = Packing.listed(place.vault, place.path.siblings, 0, 1);
        groups[0] = groupOf(place.batch, place.vault.assetType, items);
        vm.prank(_stranger);
        try state.withdrawBatch(groups, lists, 500_000) returns (uint256 failed) {
            return (failed == 0, "an event names it");
        } catch (bytes memory reason) {
            return (false, reason);
        }
    }

    function _authorization(uint256 which, uint64 quantity, address recipient, How how) private returns (Authorization memory) {
        Vault storage vault = places[which].vault;
        uint64 deadline = uint64(block.timestamp) - (how == How.SignatureExpired ? 1 : 0);
        if (how == How.OwnerSignedForAnotherRecipient) recipient = address(uint160(recipient) ^ 1);
        if (how == How.OwnerSignedAnotherQuantity) quantity ^= 1;
        if (how == How.SignatureCancelled) {
            vm.prank(vault.owner);
            state.cancelAuthorization(vault.vaultId, _paid[which], quantity, recipient, deadline);
        }
        uint256 key = how == How.StrangerSigns ? STRANGER_KEY : keyOf(vault.owner);
        return Authorization(deadline, sign(key, vault.vaultId, _paid[which], quantity, recipient, deadline));
    }

    /// @dev Whether the vault is one that L1 pays out, now, and its token would.
    function _canPay(uint256 which, uint64 quantity) private view returns (bool) {
        Vault storage vault = places[which].vault;
        Standard standard = standardOf(vault);
        if (_voided[which] || leftOut[which] || standard == Standard.None || vault.chainId != block.chainid) return false;
        if (vault.amount == 0 || vault.amount > MAX_AMOUNT) return false;
        if ((standard == Standard.ERC20) != (vault.blob.length == 0) || vault.blob.length > 255) return false;
        if (quantity == 0 || quantity > vault.amount - _paid[which]) return false;
        if (standard != Standard.ERC721) return true;
        if (vault.amount != 1 || block.timestamp < batches[places[which].batch].header.committedAt + MATURITY) return false;
        for (uint256 i; i < places.length; ++i) if (_paid[i] != 0 && _sameCard(i, which)) return false;
        return true;
    }

    function _sameCard(uint256 a, uint256 b) private view returns (bool) {
        (Vault storage first, Vault storage second) = (places[a].vault, places[b].vault);
        if (standardOf(first) != Standard.ERC721 || standardOf(second) != Standard.ERC721) return false;
        if (first.chainId != block.chainid || second.chainId != block.chainid) return false;
        return MintingBlob.tokenId(first.blob) == MintingBlob.tokenId(second.blob);
    }

    /// @dev Whether both name one card and the earlier one could be withdrawn, once it is mature.
    function _isDuplicate(uint256 earlier, uint256 later) private view returns (bool) {
        Vault storage first = places[earlier].vault;
        bool exists = !leftOut[earlier] && !leftOut[later] && first.amount == 1 && first.blob.length != 0 && first.blob.length <= 255;
        return earlier < later && exists && _sameCard(earlier, later);
    }

    /// @dev Looks at the newest vaults, as a committee member does at every batch.
    function _watch(uint256 newest) private {
        for (uint256 later = places.length - newest; later < places.length; ++later) {
            for (uint256 earlier; earlier < later; ++earlier) {
                if (_isDuplicate(earlier, later) && !_voided[later]) _void(earlier, later);
            }
        }
    }

    function _void(uint256 earlier, uint256 later) private {
        bool allowed = _isDuplicate(earlier, later) && !_voided[later] && _paid[later] == 0;
        Place memory first = places[earlier];
        Place memory second = places[later];
        (BatchHeader memory header, BatchHeader memory laterHeader) = (batches[first.batch].header, batches[second.batch].header);
        try state.voidDuplicate(first.vault, header, first.path, second.vault, laterHeader, second.path) {
            expect(allowed, "voided a vault that is no duplicate");
            _voided[later] = true;
            ++voids;
        } catch {
            expect(!allowed, "a duplicate is not voided");
        }
    }

    /// @dev What no honest committee signs: one field that L1 does not take.
    function _spoil(Vault memory vault, uint256 random) private pure {
        uint256 kind = random % 8;
        if (kind == 0) vault.amount = 0;
        if (kind == 1) vault.amount = type(uint64).max;
        if (kind == 2) vault.amount = 2;
        if (kind == 3) vault.blob = "";
        if (kind == 4) vault.blob = new bytes(256);
        if (kind == 5) vault.chainId ^= 1;
        if (kind == 6) vault.assetType ^= 1;
    }
}
