// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {ICommittee} from "../../contracts/interfaces/ICommittee.sol";
import {Authorization, BatchHeader, Mode, Standard, Vault, WithdrawalGroup} from "../../contracts/interfaces/Model.sol";
import {expect} from "./support/Expect.sol";
import {Manifests} from "./support/Manifests.sol";
import {Packing} from "./support/Packing.sol";
import {Settlement} from "./support/Settlement.sol";
import {vm} from "./support/Vm.sol";

/// @title Calls whose bytes were changed anywhere, cut off or extended do what was signed, or nothing.
/// @dev What is no ABI encoding of the function's arguments is refused by the compiler's decoder, which gives no reason; what is one and breaks
/// a rule, by a named error.
contract MalformedCallsFuzz is Settlement {
    uint64 private constant NEVER = type(uint64).max;
    uint64 private constant AMOUNT = 7;
    /// @dev An offset that points out of memory may burn all of it.
    uint256 private constant CALL_GAS = 3_000_000;
    uint64 private constant ITEM_GAS = 500_000;

    address private immutable _recipient = vm.addr(402);
    address private immutable _stranger = vm.addr(401);

    /// @dev Two coin vaults, then two vaults of one card.
    function setUp() external {
        Vault[] memory vaults = vaultsFrom(Mode.ZkRollup, 1, 4);
        for (uint256 i; i < 4; ++i) {
            (vaults[i].assetType, vaults[i].amount, vaults[i].blob) = i < 2 ? (assetTypes[0], AMOUNT, bytes("")) : (assetTypes[1], 1, bytes("5"));
        }
        commitRollup(vaults);
    }

    /// @dev What the others change is good as it is.
    function test_theCallsAsTheyAreAreTaken() external {
        expect(_send(operator, _commit()) && nextNumber(Mode.Validium) == 1, "the commit");
        expect(_send(_stranger, _voiding()) && state.withdrawn(places[3].vault.vaultId, Standard.ERC721) == 1, "the voiding");
        expect(_send(_stranger, _withdrawal()) && state.withdrawn(places[0].vault.vaultId, Standard.ERC20) == 3, "the withdrawal");
        expect(_send(_stranger, _withdrawals()) && state.withdrawn(places[1].vault.vaultId, Standard.ERC20) == 4, "the batch's second item");
        _checkPaid();
    }

    function testFuzz_aChangedWithdrawalPaysWhatItsOwnerSigned(uint8 manner, uint256 place, uint8 change, bytes calldata tail) external {
        _send(_stranger, _changed(_withdrawal(), manner, place, change, tail));
        _checkPaid();
    }

    function testFuzz_aChangedBatchOfWithdrawalsPaysWhatTheirOwnersSigned(uint8 manner, uint256 place, uint8 change, bytes calldata tail)
        external
    {
        _send(_stranger, _changed(_withdrawals(), manner, place, change, tail));
        _checkPaid();
    }

    function testFuzz_aChangedVoidingVoidsNoOtherVault(uint8 manner, uint256 place, uint8 change, bytes calldata tail) external {
        bool done = _send(_stranger, _changed(_voiding(), manner, place, change, tail));
        expect(state.withdrawn(places[2].vault.vaultId, Standard.ERC721) == 0, "the earlier one was voided");
        expect(state.withdrawn(places[3].vault.vaultId, Standard.ERC721) == (done ? 1 : 0), "voided without a word, or not at all");
    }

    function testFuzz_aChangedCommitCommitsWhatTheCommitteeSigned(uint8 manner, uint256 place, uint8 change, bytes calldata tail) external {
        bool done = _send(operator, _changed(_commit(), manner, place, change, tail));
        bytes32 stored = state.batchHeaderHash(Mode.Validium, 0);
        // A consent that does not count leaves out the card, and stops nothing.
        bool isWhole = stored == _headerHash(_manifestLeaves(false));
        bool isWithoutCard = stored == _headerHash(_manifestLeaves(true));
        expect(done ? isWhole || isWithoutCard : stored == 0, "another batch was committed");
        expect(nextNumber(Mode.Validium) == (done ? 1 : 0) && nextNumber(Mode.ZkRollup) == 1, "a batch too many");
    }

    function testFuzz_aChangedAttestationIsRefusedByName(uint8 manner, uint256 place, uint8 change, bytes calldata tail) external {
        bytes memory attestation = attest(0, _root(), 9, "data");
        bytes memory changed = _changed(attestation, manner, place, change, tail);
        if (keccak256(changed) == keccak256(attestation)) return;
        bytes32 history = state.history();
        vm.prank(operator);
        try state.commitValidiumBatch(history, 0, "content", 9, "data", _assets(), changed, "") {
            expect(false, "another attestation was taken");
        } catch (bytes memory reason) {
            bytes4 name = bytes4(reason);
            expect(
                name == ICommittee.AttestationMalformed.selector || name == ICommittee.CommitteeMismatch.selector,
                "refused without saying what is wrong"
            );
        }
    }

    /// @dev The functions that anyone may call to a lasting effect of their own, {registerAsset}, {cancelAuthorization} and {cancelList}, are left out.
    function testFuzz_anyBytesChangeNothing(uint8 which, bytes calldata arguments) external {
        bytes4[7] memory selectors = [
            state.commitRollupBatch.selector,
            state.commitValidiumBatch.selector,
            state.withdraw.selector,
            state.withdrawBatch.selector,
            state.withdrawItem.selector,
            state.voidDuplicate.selector,
            bytes4(0)
        ];
        bytes memory call = abi.encodePacked(selectors[which % 7], arguments);
        bytes32 before = state.stateCommitment();
        bool done = _send(which % 2 == 0 ? operator : _stranger, which % 7 == 6 ? bytes(arguments) : call);
        // A batch of no withdrawals is none the worse for it.
        expect(!done || which % 7 == 3, "garbage was taken");
        expect(state.stateCommitment() == before && coin.totalSupply() == 0, "garbage has changed something");
    }

    /// @dev One byte changed, the end cut off, or bytes put behind it.
    function _changed(bytes memory data, uint8 manner, uint256 place, uint8 change, bytes calldata tail)
        private
        pure
        returns (bytes memory)
    {
        if (manner % 4 == 3) return abi.encodePacked(data, tail);
        place %= data.length;
        if (manner % 4 != 2) {
            data[place] ^= bytes1(change);
        } else {
            assembly ("memory-safe") {
                mstore(data, place)
            }
        }
        return data;
    }

    function _withdrawal() private view returns (bytes memory) {
        (Vault memory vault, uint64 quantity, Authorization memory authorization) = _asked(0);
        return abi.encodeCall(
            state.withdraw, (vault, batches[0].header, places[0].path, quantity, _recipient, authorization)
        );
    }

    function _withdrawals() private view returns (bytes memory) {
        WithdrawalGroup[] memory groups = new WithdrawalGroup[](1);
        groups[0] = groupOf(0, assetTypes[0], abi.encodePacked(_item(0), _item(1)));
        return abi.encodeCall(state.withdrawBatch, (groups, new bytes[](0), ITEM_GAS));
    }

    function _item(uint256 which) private view returns (bytes memory) {
        (Vault memory vault, uint64 quantity, Authorization memory authorization) = _asked(which);
        return Packing.item(vault, places[which].path.siblings, quantity, _recipient, authorization);
    }

    function _voiding() private view returns (bytes memory) {
        BatchHeader memory header = batches[0].header;
        return abi.encodeCall(
            state.voidDuplicate, (places[2].vault, header, places[2].path, places[3].vault, header, places[3].path)
        );
    }

    function _commit() private view returns (bytes memory) {
        bytes memory attestation = attest(0, _root(), 9, "data");
        return abi.encodeCall(
            state.commitValidiumBatch, (state.history(), 0, "content", 9, "data", _assets(), attestation, _consents())
        );
    }

    function _consents() private view returns (bytes memory packed) {
        (packed,) = consentsTo(Mode.Validium, 0, "content", _manifest(), Consenting.Given);
    }

    function _manifestLeaves(bool withoutCard) private view returns (bytes32[] memory leaves) {
        Manifests.Asset[] memory assets = _manifest();
        leaves = Manifests.leavesOf(assets);
        for (uint256 i; i < assets.length; ++i) if (withoutCard && assets[i].assetType == assetTypes[1]) leaves[i] = 0;
    }

    function _headerHash(bytes32[] memory leaves) private view returns (bytes32) {
        bytes32 root = Manifests.batchRoot(Mode.Validium, leaves, "content");
        return keccak256(abi.encodePacked(uint8(4), root, uint32(9), uint64(block.timestamp), uint64(1)));
    }

    function _assets() private view returns (bytes memory) {
        return Manifests.pack(_manifest());
    }

    function _root() private view returns (bytes32) {
        return Manifests.batchRoot(Mode.Validium, Manifests.leavesOf(_manifest()), "content");
    }

    /// @dev Of the coin and the card.
    function _manifest() private view returns (Manifests.Asset[] memory) {
        Vault[] memory vaults = new Vault[](4);
        for (uint256 i; i < 4; ++i) vaults[i] = places[i].vault;
        return Manifests.assetsOf(vaults);
    }

    /// @dev Part of a vault's coins, signed for by its owner.
    function _asked(uint256 which) private view returns (Vault memory vault, uint64 quantity, Authorization memory authorization) {
        vault = places[which].vault;
        quantity = uint64(which) + 3;
        authorization = Authorization(NEVER, sign(keyOf(vault.owner), vault.vaultId, 0, quantity, _recipient, NEVER));
    }

    function _send(address sender, bytes memory call) private returns (bool done) {
        bytes memory reason;
        vm.prank(sender, sender);
        (done, reason) = address(state).call{gas: CALL_GAS}(call);
        expect(done || reason.length == 0 || reason.length >= 4, "half a name");
    }

    function _checkPaid() private view {
        uint256 total;
        for (uint64 i; i < 2; ++i) {
            uint64 out = state.withdrawn(places[i].vault.vaultId, Standard.ERC20);
            expect(out == 0 || out == i + 3, "another quantity");
            total += out;
        }
        expect(coin.totalSupply() == total * QUANTUM && coin.balanceOf(_recipient) == total * QUANTUM, "paid to somebody else");
    }
}
