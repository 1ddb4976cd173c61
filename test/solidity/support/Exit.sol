// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {IERC20} from "@openzeppelin/contracts/token/ERC20/IERC20.sol";
import {IERC721} from "@openzeppelin/contracts/token/ERC721/IERC721.sol";
import {IAssetRegistry} from "../../../contracts/interfaces/IAssetRegistry.sol";
import {BlobScheme, Standard, Vault, VaultPath} from "../../../contracts/interfaces/Model.sol";
import {Batches} from "./Batches.sol";
import {deploy, vm} from "./Vm.sol";

interface IItem {
    function totalSupply() external view returns (uint256);
    function totalSupply(uint256 id) external view returns (uint256);
}

/// @dev Whatever pays vaults out: its tokens, owners, committee, and what they sign.
abstract contract Exit {
    struct Royalty {
        address receiver;
        uint96 fraction;
    }

    struct Place {
        uint256 batch;
        Vault vault;
        VaultPath path;
    }

    uint64 internal constant MATURITY = 1 hours;
    uint128 internal constant QUANTUM = 1e9;
    uint256 internal constant MEMBERS = 3;
    uint8 internal constant THRESHOLD = 2;
    uint256 internal constant OWNERS = 4;
    /// @dev Consents to cards and items; coins have no issuer.
    uint256 internal constant ISSUER_KEY = 501;
    bytes32 private constant DOMAIN = keccak256("EIP712Domain(string name,string version,uint256 chainId,address verifyingContract)");

    address internal immutable admin = vm.addr(101);

    IERC20 internal coin;
    IERC721 internal card;
    IItem internal item;
    uint256[] internal assetTypes;
    Standard[] internal standards = [Standard.ERC20, Standard.ERC721, Standard.ERC1155];
    Place[] internal places;

    address[] internal members;
    uint256[] private _memberKeys;
    /// @dev The contract that owners and members sign for.
    address private _exit;

    constructor() {
        for (uint256 key = 201; key < 201 + MEMBERS; ++key) _insertMember(key);
    }

    /// @dev Tokens of this chain, whose minter the contract is, and which it knows.
    function issueTokens(IAssetRegistry exit) internal {
        _exit = address(exit);
        bytes memory coinArguments = abi.encode("Coin", "COIN", type(uint256).max, QUANTUM, admin, exit, address(0), false);
        coin = IERC20(deploy("contracts/tokens/MintableERC20.sol/MintableERC20", coinArguments));
        Royalty memory none;
        bytes memory cardArguments = abi.encode("Card", "CARD", "", BlobScheme.Mintmark, none, admin, exit, vm.addr(ISSUER_KEY), false);
        card = IERC721(deploy("contracts/tokens/MintableERC721.sol/MintableERC721", cardArguments));
        bytes memory itemArguments = abi.encode("Item", "ITEM", "", BlobScheme.Mintmark, none, admin, exit, vm.addr(ISSUER_KEY), false);
        item = IItem(deploy("contracts/tokens/MintableERC1155.sol/MintableERC1155", itemArguments));
        uint64 chain = uint64(block.chainid);
        assetTypes.push(exit.registerAsset(Standard.ERC20, chain, address(coin), QUANTUM, BlobScheme.Mintmark));
        assetTypes.push(exit.registerAsset(Standard.ERC721, chain, address(card), 1, BlobScheme.Mintmark));
        assetTypes.push(exit.registerAsset(Standard.ERC1155, chain, address(item), 1, BlobScheme.Mintmark));
    }

    function ownerKey(uint256 seed) internal pure returns (uint256) {
        return 301 + (seed % OWNERS);
    }

    function keyOf(address owner) internal pure returns (uint256) {
        for (uint256 i; i < OWNERS; ++i) if (vm.addr(301 + i) == owner) return 301 + i;
        revert("nobody's vault");
    }

    /// @dev A batch of vaults from a seed: few owners and few token ids, so that they collide.
    function vaultsAt(uint64 firstVaultId, uint256 seed, uint256 count) internal view returns (Vault[] memory vaults) {
        vaults = new Vault[](count);
        for (uint64 slot; slot < count; ++slot) {
            uint256 random = uint256(keccak256(abi.encode(seed, slot)));
            uint256 kind = random % 3;
            uint64 amount = kind == 1 ? 1 : uint64(1 + (random >> 8) % 1000);
            bytes memory blob = kind == 0 ? bytes("") : abi.encodePacked(bytes1(uint8(0x30 + (random >> 80) % 8)));
            vaults[slot] = Vault(
                firstVaultId + slot, uint64(block.chainid), vm.addr(ownerKey(random >> 160)), assetTypes[kind], amount, blob
            );
        }
    }

    function standardOf(Vault memory vault) internal view returns (Standard) {
        for (uint256 i; i < 3; ++i) if (assetTypes[i] == vault.assetType) return standards[i];
        return Standard.None;
    }

    function leavesOf(Vault[] memory vaults) internal pure returns (bytes32[] memory leaves) {
        leaves = new bytes32[](vaults.length);
        for (uint256 i; i < vaults.length; ++i) leaves[i] = Batches.leaf(vaults[i]);
    }

    /// @dev Signed by the first members, as many as it takes.
    function attest(bytes32 digest, uint8 threshold) internal view returns (bytes memory attestation) {
        attestation = abi.encodePacked(threshold, uint8(MEMBERS));
        for (uint256 i; i < threshold; ++i) {
            (uint8 v, bytes32 r, bytes32 s) = vm.sign(_memberKeys[i], digest);
            attestation = abi.encodePacked(attestation, uint8(1), r, bytes32(uint256(s) | (uint256(v - 27) << 255)));
        }
        for (uint256 i = threshold; i < MEMBERS; ++i) attestation = abi.encodePacked(attestation, uint8(0), members[i]);
    }

    function sign(uint256 key, uint64 vaultId, uint64 before, uint64 quantity, address recipient, uint64 deadline)
        internal
        view
        returns (bytes memory)
    {
        return sign(key, typedDigest(withdrawalHash(vaultId, before, quantity, recipient, deadline)));
    }

    function sign(uint256 key, bytes32 digest) internal pure returns (bytes memory) {
        (uint8 v, bytes32 r, bytes32 s) = vm.sign(key, digest);
        return abi.encodePacked(r, s, v);
    }

    function withdrawalHash(uint64 vaultId, uint64 before, uint64 quantity, address recipient, uint64 deadline)
        internal
        pure
        returns (bytes32)
    {
        bytes32 typehash =
            keccak256("Withdrawal(uint64 vaultId,uint64 withdrawnBefore,uint64 quantity,address recipient,uint64 deadline)");
        return keccak256(abi.encode(typehash, vaultId, before, quantity, recipient, deadline));
    }

    /// @dev From EIP-712's own words: the hash of each entry, of all of them, of the message.
    function listHash(uint64[3][] memory vaults, address recipient, uint64 deadline) internal pure returns (bytes32) {
        string memory entry = "ListedVault(uint64 vaultId,uint64 withdrawnBefore,uint64 quantity)";
        bytes memory hashes;
        for (uint256 i; i < vaults.length; ++i) {
            bytes32 hash = keccak256(abi.encode(keccak256(bytes(entry)), vaults[i][0], vaults[i][1], vaults[i][2]));
            hashes = abi.encodePacked(hashes, hash);
        }
        bytes memory message = abi.encodePacked("WithdrawalList(ListedVault[] vaults,address recipient,uint64 deadline)", entry);
        return keccak256(abi.encode(keccak256(message), keccak256(hashes), recipient, deadline));
    }

    function typedDigest(bytes32 structHash) internal view returns (bytes32) {
        bytes32 domain = keccak256(abi.encode(DOMAIN, keccak256("Mintmark"), keccak256("1"), block.chainid, _exit));
        return keccak256(abi.encodePacked(hex"1901", domain, structHash));
    }

    function _insertMember(uint256 key) private {
        address member = vm.addr(key);
        _memberKeys.push(key);
        members.push(member);
        for (uint256 i = members.length - 1; i > 0 && members[i - 1] > members[i]; --i) {
            (members[i - 1], members[i]) = (members[i], members[i - 1]);
            (_memberKeys[i - 1], _memberKeys[i]) = (_memberKeys[i], _memberKeys[i - 1]);
        }
    }
}
