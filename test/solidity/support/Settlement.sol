// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {IAccessControl} from "@openzeppelin/contracts/access/IAccessControl.sol";
import {IStateCommitment} from "../../../contracts/interfaces/IStateCommitment.sol";
import {BatchHeader, Mode, Standard, Vault, VaultPath, WithdrawalGroup, WithdrawalTerms} from "../../../contracts/interfaces/Model.sol";
import {Batches} from "./Batches.sol";
import {Exit} from "./Exit.sol";
import {Manifests} from "./Manifests.sol";
import {NaiveTree} from "./NaiveTree.sol";
import {deploy, place, vm} from "./Vm.sol";

/// @dev What the contract offers beyond its interface. Tests know the contracts by interfaces alone, so that the compiler need not
/// compile them once more.
interface IState is IStateCommitment, IAccessControl {
    function OPERATOR_ROLE() external view returns (bytes32);
    function withdrawItem(WithdrawalTerms calldata terms, uint64 vaultId, uint256 assetType, address caller, bytes calldata item) external;
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
        address transfersCode;
    }

    /// @dev What the issuer says of a batch, or what an operator makes of it. Only the first counts for both of its assets.
    enum Consenting {
        Given,
        Withheld,
        ByAnotherKey,
        ToOtherContent,
        ToAnotherMode,
        ToAnotherBatch,
        OfAnotherEpoch,
        OfOneAssetOnly
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
    /// @dev By place: the manifest has nothing for the vault's asset.
    mapping(uint256 place => bool) internal leftOut;
    /// @dev Of coins, cards and items.
    uint64[3] internal issuerEpochs = [0, 1, 1];
    bool[3] internal suspended;

    constructor() {
        address transfersCode = place("contracts/state/Transfers.sol/Transfers");
        Config memory config = Config(admin, guardian, operator, members, THRESHOLD, 1 days, MATURITY, transfersCode);
        state = IState(deploy("contracts/StateCommitment.sol/StateCommitment", abi.encode(config)));
        issueTokens(state);
    }

    /// @dev The vaults of the next batch of a mode, from a seed.
    function vaultsFrom(Mode mode, uint256 seed, uint256 count) internal view returns (Vault[] memory) {
        return vaultsAt((uint64(mode) << 63) | (nextNumber(mode) << 20), seed, count);
    }

    function commitRollup(Vault[] memory vaults) internal {
        commitRollup(vaults, Consenting.Given);
    }

    function commitValidium(Vault[] memory vaults) internal {
        commitValidium(vaults, Consenting.Given);
    }

    function commitRollup(Vault[] memory vaults, Consenting how) internal {
        uint64 number = nextNumber(Mode.ZkRollup);
        Standard[] memory each = new Standard[](vaults.length);
        for (uint256 i; i < vaults.length; ++i) each[i] = standardOf(vaults[i]);
        bytes memory data = Batches.encode(vaults, each);
        Manifests.Asset[] memory assets = Manifests.assetsOf(vaults);
        bytes32 content = NaiveTree.root(leavesOf(vaults), NaiveTree.heightOf(vaults.length));
        (bytes memory consents, uint256 missing) = consentsTo(Mode.ZkRollup, number, content, assets, how);
        bytes32 history = state.history();
        vm.prank(operator, operator);
        state.commitRollupBatch(history, consents, number, data);
        remember(Mode.ZkRollup, vaults, assets, missing, keccak256(data));
    }

    function commitValidium(Vault[] memory vaults, Consenting how) internal {
        uint64 number = nextNumber(Mode.Validium);
        bytes32 dataHash = keccak256(abi.encode("data", number));
        bytes32 content = NaiveTree.root(leavesOf(vaults), NaiveTree.heightOf(vaults.length));
        // L1 takes no manifest that names anything else.
        Manifests.Asset[] memory assets = Manifests.assetsOf(_registered(vaults));
        bytes32 root = Manifests.batchRoot(Mode.Validium, Manifests.leavesOf(assets), content);
        bytes memory attestation = attest(number, root, uint32(vaults.length), dataHash);
        (bytes memory consents, uint256 missing) = consentsTo(Mode.Validium, number, content, assets, how);
        bytes32 history = state.history();
        vm.prank(operator);
        state.commitValidiumBatch(
            history, number, content, uint32(vaults.length), dataHash, Manifests.pack(assets), attestation, consents
        );
        remember(Mode.Validium, vaults, assets, missing, dataHash);
    }

    /// @return packed As docs/protocol.md 5 writes consents.
    /// @return missing The assets that L1 leaves out of the batch; bit i stands for asset i.
    function consentsTo(Mode mode, uint64 number, bytes32 content, Manifests.Asset[] memory assets, Consenting how)
        internal
        view
        returns (bytes memory packed, uint256 missing)
    {
        (bytes memory indexes, bytes memory named) = ("", "");
        uint256 counted;
        for (uint8 i; i < assets.length; ++i) {
            uint256 kind = assets[i].assetType == assetTypes[1] ? 1 : assets[i].assetType == assetTypes[2] ? 2 : 0;
            if (kind == 0 || assets[i].chainId != block.chainid) continue;
            missing |= 1 << i;
            // An honest issuer names no suspended token.
            if (suspended[kind]) continue;
            if (how == Consenting.OfOneAssetOnly && indexes.length == 1) continue;
            counted |= 1 << i;
            indexes = abi.encodePacked(indexes, i);
            uint64 epoch = issuerEpochs[kind] + (how == Consenting.OfAnotherEpoch ? 1 : 0);
            named = abi.encodePacked(named, assets[i].chainId, assets[i].assetType, epoch);
        }
        if (counted == 0 || how == Consenting.Withheld) return ("", missing);
        if (how == Consenting.ToOtherContent) content ^= bytes32(uint256(1));
        if (how == Consenting.ToAnotherMode) mode = mode == Mode.Validium ? Mode.ZkRollup : Mode.Validium;
        if (how == Consenting.ToAnotherBatch) number ^= 1;
        bytes32 typehash = keccak256("IssuerConsent(uint8 mode,uint64 batchNumber,bytes32 content,bytes32 assetsHash)");
        bytes32 message = keccak256(abi.encode(typehash, mode, number, content, keccak256(named)));
        bytes memory signature = sign(how == Consenting.ByAnotherKey ? ISSUER_KEY + 1 : ISSUER_KEY, typedDigest(message));
        packed = abi.encodePacked(uint8(indexes.length), indexes, uint16(signature.length), signature);
        if (how == Consenting.Given || how == Consenting.OfOneAssetOnly) missing &= ~counted;
    }

    /// @dev The vaults whose asset is one of this chain's.
    function _registered(Vault[] memory vaults) private view returns (Vault[] memory known) {
        known = new Vault[](vaults.length);
        uint256 count;
        for (uint256 i; i < vaults.length; ++i) {
            if (vaults[i].chainId == block.chainid && standardOf(vaults[i]) != Standard.None) known[count++] = vaults[i];
        }
        assembly ("memory-safe") {
            mstore(known, count)
        }
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
        VaultPath memory path;
        for (uint256 i; i < places.length; ++i) {
            // The manifest lacks a vault of another chain, whatever its asset type.
            bool same = places[i].vault.assetType == assetType && places[i].vault.chainId == block.chainid;
            if (places[i].batch == batch && same) path = places[i].path;
        }
        return WithdrawalGroup(
            batches[batch].mode, number, batches[batch].header, assetType, path.assetIndex, path.assetSiblings, items
        );
    }

    function remember(Mode mode, Vault[] memory vaults, Manifests.Asset[] memory assets, uint256 missing, bytes32 dataHash) internal {
        bytes32[] memory leaves = leavesOf(vaults);
        bytes32[] memory manifest = Manifests.leavesOf(assets);
        for (uint256 i; i < assets.length; ++i) if ((missing >> i) & 1 == 1) manifest[i] = 0;
        uint256 height = NaiveTree.heightOf(vaults.length);
        bytes32 root = Manifests.batchRoot(mode, manifest, NaiveTree.root(leaves, height));
        BatchHeader memory header = BatchHeader(
            root, uint32(vaults.length), uint64(block.timestamp), uint64(batches.length)
        );
        uint64 number = nextNumber(mode) - 1;
        batches.push(Batch(mode, header, state.batchHeaderHash(mode, number)));
        stateLeaves[mode].push(
            keccak256(abi.encodePacked(uint8(2), number, header.vaultCount, dataHash, header.batchRoot))
        );
        for (uint256 slot; slot < vaults.length; ++slot) {
            bytes32[] memory siblings = NaiveTree.siblings(leaves, height, slot);
            VaultPath memory path = Manifests.pathOf(assets, manifest, vaults[slot], siblings);
            for (uint256 i; i < assets.length; ++i) {
                bool same = assets[i].chainId == vaults[slot].chainId && assets[i].assetType == vaults[slot].assetType;
                if (same && (missing >> i) & 1 == 1) leftOut[places.length] = true;
            }
            places.push(Place(batches.length - 1, vaults[slot], path));
        }
    }
}
