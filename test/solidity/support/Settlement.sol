// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {IAccessControl} from "@openzeppelin/contracts/access/IAccessControl.sol";
import {IStateCommitment} from "../../../contracts/interfaces/IStateCommitment.sol";
import {BatchHeader, Mode, Vault, WithdrawalGroup, WithdrawalTerms} from "../../../contracts/interfaces/Model.sol";
import {Batches} from "./Batches.sol";
import {Exit} from "./Exit.sol";
import {NaiveTree} from "./NaiveTree.sol";
import {deploy, vm} from "./Vm.sol";

/// @dev What the contract offers beyond its interface. Tests know the contracts by interfaces alone, so that the compiler need not
/// compile them once more.
interface IState is IStateCommitment, IAccessControl {
    function OPERATOR_ROLE() external view returns (bytes32);
    function withdrawItem(WithdrawalTerms calldata terms, uint64 vaultId, uint256 assetType, address caller, bytes calldata item) external;
    function MIN_ITEM_GAS() external view returns (uint64);
}

/// @dev A settlement contract, its roles, and everything that was ever committed to it.
abstract contract Settlement is Exit {
    /// @dev As the contracts' constructors take them.
    struct Config {
        address admin;
        address guardian;
        address operator;
        address[] committee;
        uint8 threshold;
        uint64 changeDelay;
        uint64 maturity;
    }

    struct Batch {
        Mode mode;
        BatchHeader header;
        bytes32 headerHash;
    }

    address internal immutable guardian = vm.addr(102);
    address internal immutable operator = vm.addr(103);

    IState internal state;
    Batch[] internal batches;
    mapping(Mode => bytes32[]) internal stateLeaves;

    constructor() {
        Config memory config = Config(admin, guardian, operator, members, THRESHOLD, 1 days, MATURITY);
        state = IState(deploy("StateCommitment.sol/StateCommitment", abi.encode(config)));
        issueTokens(state);
    }

    /// @dev The vaults of the next batch of a mode, from a seed.
    function vaultsFrom(Mode mode, uint256 seed, uint256 count) internal view returns (Vault[] memory) {
        return vaultsAt((uint64(mode) << 63) | (nextNumber(mode) << 20), seed, count);
    }

    function commitRollup(Vault[] memory vaults) internal {
        uint64 number = nextNumber(Mode.ZkRollup);
        bytes memory data = Batches.encode(vaults, assetTypes, standards);
        bytes32 history = state.history();
        vm.prank(operator, operator);
        state.commitRollupBatch(history, number, data);
        remember(Mode.ZkRollup, vaults, keccak256(data));
    }

    function commitValidium(Vault[] memory vaults) internal {
        uint64 number = nextNumber(Mode.Validium);
        bytes32 dataHash = keccak256(abi.encode("data", number));
        bytes32 root = NaiveTree.root(leavesOf(vaults), NaiveTree.heightOf(vaults.length));
        bytes memory attestation = attest(number, root, uint32(vaults.length), dataHash);
        bytes32 history = state.history();
        vm.prank(operator);
        state.commitValidiumBatch(history, number, root, uint32(vaults.length), dataHash, attestation);
        remember(Mode.Validium, vaults, dataHash);
    }

    function attest(uint64 number, bytes32 root, uint32 count, bytes32 dataHash) internal view returns (bytes memory) {
        (, uint64 epoch) = state.committee();
        bytes32 typehash =
            keccak256("ValidiumBatch(bytes32 history,uint64 batchNumber,bytes32 batchRoot,uint32 vaultCount,bytes32 dataHash,uint64 epoch)");
        bytes memory message = abi.encode(typehash, state.history(), number, root, count, dataHash, epoch);
        return attest(typedDigest(keccak256(message)), THRESHOLD);
    }

    function nextNumber(Mode mode) internal view returns (uint64) {
        (uint64 validium, uint64 rollup) = state.batchCounts();
        return mode == Mode.Validium ? validium : rollup;
    }

    /// @dev Packed items of vaults of one asset and one batch.
    function groupOf(uint256 batch, uint256 assetType, bytes memory items) internal view returns (WithdrawalGroup memory) {
        uint64 number;
        for (uint256 i; i < batch; ++i) if (batches[i].mode == batches[batch].mode) ++number;
        return WithdrawalGroup(batches[batch].mode, number, batches[batch].header, assetType, items);
    }

    function remember(Mode mode, Vault[] memory vaults, bytes32 dataHash) internal {
        bytes32[] memory leaves = leavesOf(vaults);
        uint256 height = NaiveTree.heightOf(vaults.length);
        BatchHeader memory header = BatchHeader(
            NaiveTree.root(leaves, height), uint32(vaults.length), uint64(block.timestamp), uint64(batches.length)
        );
        uint64 number = nextNumber(mode) - 1;
        batches.push(Batch(mode, header, state.batchHeaderHash(mode, number)));
        stateLeaves[mode].push(
            keccak256(abi.encodePacked(uint8(2), number, header.vaultCount, dataHash, header.batchRoot))
        );
        for (uint256 slot; slot < vaults.length; ++slot) {
            places.push(Place(batches.length - 1, vaults[slot], NaiveTree.siblings(leaves, height, slot)));
        }
    }
}
