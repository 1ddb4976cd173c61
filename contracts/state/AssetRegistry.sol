// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {ERC165Checker} from "@openzeppelin/contracts/utils/introspection/ERC165Checker.sol";
import {IAssetRegistry} from "../interfaces/IAssetRegistry.sol";
import {IMintable} from "../interfaces/IMintable.sol";
import {BlobScheme, Standard} from "../interfaces/Model.sol";
import {AssetEncoding} from "../libraries/AssetEncoding.sol";

/// @dev What a token may say of itself; this project's tokens do.
interface IMintingTerms {
    function blobScheme() external view returns (BlobScheme);
    /// @dev ERC-20: base units of one quantized unit; 0 leaves it to whoever registers the token.
    function quantum() external view returns (uint256);
    function decimals() external view returns (uint8);
}

/// @title Which token contract an asset type stands for.
/// @dev Permanent, open to anyone, grants nothing: a mint still needs the token's own minter role.
abstract contract AssetRegistry is IAssetRegistry {
    struct Asset {
        address token;
        Standard standard;
        BlobScheme scheme;
        /// @dev Vaults of earlier batches do not count.
        uint64 since;
        uint128 quantum;
    }

    bytes4 private constant ERC721_INTERFACE = 0x80ac58cd;
    bytes4 private constant ERC1155_INTERFACE = 0xd9b67a26;

    mapping(uint64 chainId => mapping(uint256 assetType => Asset)) internal _assets;
    /// @dev The first asset of a contract of this chain, which settles its standard. Only an ERC-20 can have more, of other quanta.
    mapping(address token => uint256) private _firstOf;

    /// @inheritdoc IAssetRegistry
    function registerAsset(Standard standard, uint64 chainId, address token, uint256 quantum)
        external
        virtual
        returns (uint256 assetType)
    {
        if (standard == Standard.None || token == address(0) || chainId == 0) revert AssetInvalid(standard, chainId, token);
        bool fungible = standard == Standard.ERC20;
        if (quantum == 0 || quantum >= 1 << 128 || (!fungible && quantum != 1)) revert QuantumInvalid(quantum);
        assetType = AssetEncoding.assetType(standard, token, quantum);
        if (_assets[chainId][assetType].standard != Standard.None) revert AssetAlreadyRegistered(chainId, token, assetType);
        BlobScheme scheme;
        if (chainId == block.chainid) {
            uint256 first = _firstOf[token];
            bool differs = first != 0 && (!fungible || _assets[chainId][first].standard != standard);
            if (differs) revert AssetAlreadyRegistered(chainId, token, first);
            _requireConforming(standard, token, quantum);
            scheme = _schemeOf(token);
            if (first == 0) _firstOf[token] = assetType;
        }
        _assets[chainId][assetType] = Asset(token, standard, scheme, _nextSequence(), uint128(quantum));
        emit AssetRegistered(assetType, chainId, token, standard, quantum, scheme);
    }

    /// @inheritdoc IAssetRegistry
    function asset(uint64 chainId, uint256 assetType)
        external
        view
        returns (Standard standard, address token, uint256 quantum, BlobScheme scheme, uint64 since)
    {
        Asset storage found = _assets[chainId][assetType];
        return (found.standard, found.token, found.quantum, found.scheme, found.since);
    }

    /// @dev Sequence of the next batch that becomes known here.
    function _nextSequence() internal view virtual returns (uint64);

    /// @dev A token that states its standard or quantum can be registered only by that, so that nobody can squat it under another one.
    /// Each question has 30,000 gas, and two new storage slots are written after the last one: a caller who holds gas back to keep the
    /// token from answering cannot pay for those.
    function _requireConforming(Standard standard, address token, uint256 quantum) private view {
        if (token.code.length == 0) revert TokenWithoutCode(token);
        bool is721 = ERC165Checker.supportsERC165InterfaceUnchecked(token, ERC721_INTERFACE);
        bool is1155 = ERC165Checker.supportsERC165InterfaceUnchecked(token, ERC1155_INTERFACE);
        bool differs = (is721 && standard != Standard.ERC721) || (is1155 && standard != Standard.ERC1155);
        // A token that is neither and is mintable, or has decimals, is fungible.
        if (!is721 && !is1155 && standard != Standard.ERC20) {
            differs = ERC165Checker.supportsERC165InterfaceUnchecked(token, type(IMintable).interfaceId)
                || _ask(token, IMintingTerms.decimals.selector) != 0;
        }
        if (differs) revert StandardMismatch(token, standard);
        if (standard == Standard.ERC20) {
            uint256 own = _ask(token, IMintingTerms.quantum.selector);
            if (own != 0 && own != quantum) revert QuantumMismatch(token, own);
        }
    }

    /// @dev This project's tokens name their scheme; existing tokens, which do not, follow Immutable X's.
    function _schemeOf(address token) private view returns (BlobScheme) {
        return _ask(token, IMintingTerms.blobScheme.selector) == uint8(BlobScheme.Mintmark) ? BlobScheme.Mintmark : BlobScheme.Imx;
    }

    /// @dev A token's one-word answer; 0 without one. A longer answer costs only the token's gas.
    function _ask(address token, bytes4 question) private view returns (uint256 answer) {
        assembly ("memory-safe") {
            mstore(0, question)
            let answered := staticcall(30000, token, 0, 4, 0, 32)
            if and(answered, eq(returndatasize(), 32)) { answer := mload(0) }
        }
    }
}
