// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {ERC165Checker} from "@openzeppelin/contracts/utils/introspection/ERC165Checker.sol";
import {IAssetRegistry} from "../interfaces/IAssetRegistry.sol";
import {IMintable} from "../interfaces/IMintable.sol";
import {MintingBlobScheme, MADE_ONLY, Standard, TRANSFERABLE} from "../interfaces/Model.sol";
import {AssetEncoding} from "../libraries/AssetEncoding.sol";
import {VaultState} from "./VaultState.sol";

/// @dev Terms that a token can state. This project's tokens do.
interface IMintingTerms {
    function mintingBlobScheme() external view returns (MintingBlobScheme);
    /// @dev ERC-20: base units of one quantized unit. With 0, whoever registers the token chooses
    /// it.
    function quantum() external view returns (uint256);
    function decimals() external view returns (uint8);
    /// @dev Whether owners can transfer vaults of the token.
    function transferable() external view returns (bool);
    /// @dev Whether only vaults count that the token itself lets L1 make.
    function madeOnly() external view returns (bool);
}

/// @dev The accounts that speak for a token.
interface IOwned {
    function owner() external view returns (address);
    function hasRole(bytes32 role, address account) external view returns (bool);
}

/// @title The registry of asset types and their token contracts.
/// @dev Entries are permanent, and anyone can add one. An entry grants nothing: a mint still needs
/// the token's own minter role.
abstract contract AssetRegistry is IAssetRegistry, VaultState {
    bytes4 private constant ERC721_INTERFACE = 0x80ac58cd;
    bytes4 private constant ERC1155_INTERFACE = 0xd9b67a26;
    bytes32 private constant DEFAULT_ADMIN = 0;

    /// @inheritdoc IAssetRegistry
    function registerAsset(
        Standard standard,
        uint64 chainId,
        address token,
        uint256 quantum,
        MintingBlobScheme scheme
    ) external returns (uint256 assetType) {
        if (standard == Standard.None || token == address(0) || chainId == 0)
            revert AssetInvalid(standard, chainId, token);
        bool fungible = standard == Standard.ERC20;
        bool isFirst;
        uint8 flags;
        if (quantum == 0 || quantum >= 1 << 128 || (!fungible && quantum != 1))
            revert QuantumInvalid(quantum);
        assetType = AssetEncoding.assetType(standard, token, quantum);
        if (_assets[chainId][assetType].standard != Standard.None)
            revert AssetAlreadyRegistered(chainId, token, assetType);
        if (chainId == block.chainid) {
            uint256 first = _firstOf[token];
            bool differs =
                first != 0 && (!fungible || _assets[chainId][first].standard != standard);
            if (differs) revert AssetAlreadyRegistered(chainId, token, first);
            _requireConforming(standard, token, quantum, scheme);
            flags = _flagsOf(token);
            isFirst = first == 0;
            if (isFirst) _firstOf[token] = assetType;
        } else if (scheme != MintingBlobScheme.Imx) {
            revert SchemeMismatch(token, MintingBlobScheme.Imx);
        }
        _assets[chainId][assetType] = Asset(
            token,
            standard,
            scheme,
            _nextSequence(),
            flags,
            uint128(quantum)
        );
        _onRegistered(chainId, assetType, isFirst);
        emit AssetRegistered(assetType, chainId, token, standard, quantum, scheme);
        if (flags & TRANSFERABLE != 0) emit AssetTransferable(assetType, chainId);
        if (flags & MADE_ONLY != 0) emit AssetMadeOnly(assetType, chainId);
    }

    /// @inheritdoc IAssetRegistry
    function isTransferable(uint64 chainId, uint256 assetType) external view returns (bool) {
        return _assets[chainId][assetType].flags & TRANSFERABLE != 0;
    }

    /// @inheritdoc IAssetRegistry
    function isMadeOnly(uint64 chainId, uint256 assetType) external view returns (bool) {
        return _assets[chainId][assetType].flags & MADE_ONLY != 0;
    }

    /// @inheritdoc IAssetRegistry
    function asset(
        uint64 chainId,
        uint256 assetType
    )
        external
        view
        returns (
            Standard standard,
            address token,
            uint256 quantum,
            MintingBlobScheme scheme,
            uint64 since
        )
    {
        Asset storage found = _assets[chainId][assetType];
        return (found.standard, found.token, found.quantum, found.scheme, found.since);
    }

    /// @dev Sequence of the next batch that becomes known here.
    function _nextSequence() internal view virtual returns (uint64);

    /// @dev The token's word about its assets, which holds for ever.
    function _flagsOf(address token) internal view virtual returns (uint8);

    /// @param isFirst Whether this is the first asset of a contract of this chain.
    function _onRegistered(uint64 chainId, uint256 assetType, bool isFirst) internal virtual;

    /// @dev Reverts unless the caller may register the token in this way. Each question to the
    /// token has 30,000 gas, and two new storage slots are written after the last one. So a caller
    /// who gives too little gas for an answer cannot pay for those.
    function _requireConforming(
        Standard standard,
        address token,
        uint256 quantum,
        MintingBlobScheme scheme
    ) private view {
        if (token.code.length == 0) revert TokenWithoutCode(token);
        _requireStandard(standard, token, quantum);
        (bool answered, uint256 stated) = _ask(
            token,
            abi.encodeCall(IMintingTerms.mintingBlobScheme, ())
        );
        if (answered && stated <= uint8(type(MintingBlobScheme).max)) {
            if (stated != uint8(scheme)) revert SchemeMismatch(token, MintingBlobScheme(stated));
        } else if (!_speaksFor(msg.sender, token) && scheme != MintingBlobScheme.Imx) {
            revert SchemeMismatch(token, MintingBlobScheme.Imx);
        }
    }

    /// @dev A token that states its standard or quantum can be registered only with it, so that
    /// nobody can register it first with another.
    function _requireStandard(Standard standard, address token, uint256 quantum) private view {
        bool is721 = ERC165Checker.supportsERC165InterfaceUnchecked(token, ERC721_INTERFACE);
        bool is1155 = ERC165Checker.supportsERC165InterfaceUnchecked(token, ERC1155_INTERFACE);
        bool differs =
            (is721 && standard != Standard.ERC721) || (is1155 && standard != Standard.ERC1155);
        // A token that is neither and is mintable, or has decimals, is fungible.
        if (!is721 && !is1155 && standard != Standard.ERC20) {
            (, uint256 decimals) = _ask(token, abi.encodeCall(IMintingTerms.decimals, ()));
            differs =
                decimals != 0 ||
                ERC165Checker.supportsERC165InterfaceUnchecked(token, type(IMintable).interfaceId);
        }
        if (differs) revert StandardMismatch(token, standard);
        if (standard == Standard.ERC20) {
            (, uint256 own) = _ask(token, abi.encodeCall(IMintingTerms.quantum, ()));
            if (own != 0 && own != quantum) revert QuantumMismatch(token, own);
        }
    }

    /// @dev Whether the caller is the token's owner or admin. Reverts when the token has one and
    /// the caller is another account.
    function _speaksFor(address caller, address token) internal view returns (bool) {
        (, uint256 owner) = _ask(token, abi.encodeCall(IOwned.owner, ()));
        if (owner == uint160(caller)) return true;
        (bool answered, uint256 isAdmin) = _ask(
            token,
            abi.encodeCall(IOwned.hasRole, (DEFAULT_ADMIN, caller))
        );
        if (answered && isAdmin == 1) return true;
        if (owner != 0 || (answered && isAdmin == 0)) revert NotTokenOwner(token, caller);
        return false;
    }

    /// @dev Whether the token answers yes. One without an answer of this form says no.
    function _says(address token, bytes memory question) internal view returns (bool) {
        (bool answered, uint256 yes) = _ask(token, question);
        return answered && yes == 1;
    }

    /// @dev A token's answer of one word, and whether the token gave it.
    function _ask(
        address token,
        bytes memory question
    ) internal view returns (bool answered, uint256 answer) {
        assembly ("memory-safe") {
            answered := staticcall(30000, token, add(question, 0x20), mload(question), 0, 32)
            answered := and(answered, eq(returndatasize(), 32))
            if answered {
                answer := mload(0)
            }
        }
    }
}
