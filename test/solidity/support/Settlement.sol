// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {IAccessControl} from "@openzeppelin/contracts/access/IAccessControl.sol";
import {IERC20} from "@openzeppelin/contracts/token/ERC20/IERC20.sol";
import {IERC721} from "@openzeppelin/contracts/token/ERC721/IERC721.sol";
import {IStateCommitment} from "../../../contracts/interfaces/IStateCommitment.sol";
import {BatchHeader, BlobScheme, Mode, Standard, Vault, WithdrawalRequest} from "../../../contracts/interfaces/Model.sol";
import {Batches} from "./Batches.sol";
import {NaiveTree} from "./NaiveTree.sol";
import {deploy, vm} from "./Vm.sol";

/// @dev What the contract offers beyond its interface. Tests know the contracts by interfaces alone, so that the compiler need not
/// compile them once more.
interface IState is IStateCommitment, IAccessControl {
    function OPERATOR_ROLE() external view returns (bytes32);
    function withdrawItem(WithdrawalRequest calldata request, address caller) external;
}

interface IItem {
    function totalSupply() external view returns (uint256);
    function totalSupply(uint256 id) external view returns (uint256);
}


/// @dev A settlement contract, its tokens, its roles, and everything that was ever committed to it.
abstract contract Settlement {
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

    struct Royalty {
        address receiver;
        uint96 fraction;
    }

    struct Batch {
        Mode mode;
        BatchHeader header;
        bytes32 headerHash;
    }

    struct Place {
        uint256 batch;
        Vault vault;
        bytes32[] siblings;
    }

    uint64 internal constant MATURITY = 1 hours;
    uint128 internal constant QUANTUM = 1e9;
    uint256 internal constant MEMBERS = 3;
    uint8 internal constant THRESHOLD = 2;
    uint256 internal constant OWNERS = 4;
    bytes32 private constant DOMAIN = keccak256("EIP712Domain(string name,string version,uint256 chainId,address verifyingContract)");

    address internal immutable admin = vm.addr(101);
    address internal immutable guardian = vm.addr(102);
    address internal immutable operator = vm.addr(103);

    IState internal state;
    IERC20 internal coin;
    IERC721 internal card;
    IItem internal item;
    uint256[] internal assetTypes;
    Standard[] internal standards = [Standard.ERC20, Standard.ERC721, Standard.ERC1155];

    Batch[] internal batches;
    Place[] internal places;
    mapping(Mode => bytes32[]) internal stateLeaves;

    uint256[] private _memberKeys;
    address[] private _members;

    constructor() {
        for (uint256 key = 201; key < 201 + MEMBERS; ++key) _insertMember(key);
        Config memory config = Config(admin, guardian, operator, _members, THRESHOLD, 1 days, MATURITY);
        state = IState(deploy("StateCommitment.sol/StateCommitment", abi.encode(config)));
        address minter = address(state);
        bytes memory coinArguments = abi.encode("Coin", "COIN", type(uint256).max, QUANTUM, admin, minter);
        coin = IERC20(deploy("tokens/MintableERC20.sol/MintableERC20", coinArguments));
        Royalty memory none;
        bytes memory cardArguments = abi.encode("Card", "CARD", "", BlobScheme.Mintmark, none, admin, minter);
        card = IERC721(deploy("tokens/MintableERC721.sol/MintableERC721", cardArguments));
        bytes memory itemArguments = abi.encode("Item", "ITEM", "", BlobScheme.Mintmark, admin, minter);
        item = IItem(deploy("tokens/MintableERC1155.sol/MintableERC1155", itemArguments));
        uint64 chain = uint64(block.chainid);
        assetTypes.push(state.registerAsset(Standard.ERC20, chain, address(coin), QUANTUM));
        assetTypes.push(state.registerAsset(Standard.ERC721, chain, address(card), 1));
        assetTypes.push(state.registerAsset(Standard.ERC1155, chain, address(item), 1));
    }

    function ownerKey(uint256 seed) internal pure returns (uint256) {
        return 301 + (seed % OWNERS);
    }

    function keyOf(address owner) internal pure returns (uint256) {
        for (uint256 i; i < OWNERS; ++i) if (vm.addr(301 + i) == owner) return 301 + i;
        revert("nobody's vault");
    }

    /// @dev The vaults of the next batch of a mode, from a seed: few owners and few token ids, so that they collide.
    function vaultsFrom(Mode mode, uint256 seed, uint256 count) internal view returns (Vault[] memory vaults) {
        vaults = new Vault[](count);
        uint64 first = (uint64(mode) << 63) | (nextNumber(mode) << 20);
        for (uint64 slot; slot < count; ++slot) {
            uint256 random = uint256(keccak256(abi.encode(seed, slot)));
            uint256 kind = random % 3;
            uint64 amount = kind == 1 ? 1 : uint64(1 + (random >> 8) % 1000);
            bytes memory blob = kind == 0 ? bytes("") : abi.encodePacked(bytes1(uint8(0x30 + (random >> 80) % 8)));
            vaults[slot] =
                Vault(first + slot, uint64(block.chainid), vm.addr(ownerKey(random >> 160)), assetTypes[kind], amount, blob);
        }
    }

    function commitRollup(Vault[] memory vaults) internal {
        uint64 number = nextNumber(Mode.ZkRollup);
        bytes memory data = Batches.encode(vaults, assetTypes, standards);
        vm.prank(operator, operator);
        state.commitRollupBatch(number, data);
        remember(Mode.ZkRollup, vaults, keccak256(data));
    }

    function commitValidium(Vault[] memory vaults) internal {
        uint64 number = nextNumber(Mode.Validium);
        bytes32 dataHash = keccak256(abi.encode("data", number));
        bytes32 root = NaiveTree.root(leavesOf(vaults), NaiveTree.heightOf(vaults.length));
        bytes memory attestation = attest(number, root, uint32(vaults.length), dataHash);
        vm.prank(operator);
        state.commitValidiumBatch(number, root, uint32(vaults.length), dataHash, attestation);
        remember(Mode.Validium, vaults, dataHash);
    }

    /// @dev Signed by the first two members.
    function attest(uint64 number, bytes32 root, uint32 count, bytes32 dataHash) internal view returns (bytes memory attestation) {
        (, uint64 epoch) = state.committee();
        bytes32 typehash =
            keccak256("ValidiumBatch(uint64 batchNumber,bytes32 batchRoot,uint32 vaultCount,bytes32 dataHash,uint64 epoch)");
        bytes32 digest = typedDigest(keccak256(abi.encode(typehash, number, root, count, dataHash, epoch)));
        attestation = abi.encodePacked(THRESHOLD, uint8(MEMBERS));
        for (uint256 i; i < MEMBERS; ++i) attestation = abi.encodePacked(attestation, _members[i]);
        for (uint8 i; i < THRESHOLD; ++i) {
            (uint8 v, bytes32 r, bytes32 s) = vm.sign(_memberKeys[i], digest);
            attestation = abi.encodePacked(attestation, i, r, bytes32(uint256(s) | (uint256(v - 27) << 255)));
        }
    }

    function sign(uint256 key, uint64 vaultId, uint64 before, uint64 quantity, address recipient, uint64 deadline)
        internal
        view
        returns (bytes memory)
    {
        (uint8 v, bytes32 r, bytes32 s) = vm.sign(key, withdrawalDigest(vaultId, before, quantity, recipient, deadline));
        return abi.encodePacked(r, s, v);
    }

    function withdrawalDigest(uint64 vaultId, uint64 before, uint64 quantity, address recipient, uint64 deadline)
        internal
        view
        returns (bytes32)
    {
        bytes32 typehash =
            keccak256("Withdrawal(uint64 vaultId,uint64 withdrawnBefore,uint64 quantity,address recipient,uint64 deadline)");
        return typedDigest(keccak256(abi.encode(typehash, vaultId, before, quantity, recipient, deadline)));
    }

    function typedDigest(bytes32 structHash) internal view returns (bytes32) {
        bytes32 domain = keccak256(abi.encode(DOMAIN, keccak256("Mintmark"), keccak256("1"), block.chainid, address(state)));
        return keccak256(abi.encodePacked(hex"1901", domain, structHash));
    }

    function nextNumber(Mode mode) internal view returns (uint64) {
        (uint64 validium, uint64 rollup) = state.batchCounts();
        return mode == Mode.Validium ? validium : rollup;
    }

    function standardOf(Vault memory vault) internal view returns (Standard) {
        for (uint256 i; i < 3; ++i) if (assetTypes[i] == vault.assetType) return standards[i];
        return Standard.None;
    }

    function leavesOf(Vault[] memory vaults) internal pure returns (bytes32[] memory leaves) {
        leaves = new bytes32[](vaults.length);
        for (uint256 i; i < vaults.length; ++i) leaves[i] = Batches.leaf(vaults[i]);
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

    function _insertMember(uint256 key) private {
        address member = vm.addr(key);
        _memberKeys.push(key);
        _members.push(member);
        for (uint256 i = _members.length - 1; i > 0 && _members[i - 1] > _members[i]; --i) {
            (_members[i - 1], _members[i]) = (_members[i], _members[i - 1]);
            (_memberKeys[i - 1], _memberKeys[i]) = (_memberKeys[i], _memberKeys[i - 1]);
        }
    }
}
