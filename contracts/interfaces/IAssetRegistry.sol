// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {BlobScheme, Standard} from "./Model.sol";

/// @title Which token contract an asset type stands for.
interface IAssetRegistry {
    /// @param scheme How a token of this chain reads its blobs; of another chain's it says nothing, the mirror's registry there does.
    event AssetRegistered(
        uint256 indexed assetType,
        uint64 indexed chainId,
        address indexed token,
        Standard standard,
        uint256 quantum,
        BlobScheme scheme
    );

    /// @notice No standard, no chain or no token.
    error AssetInvalid(Standard standard, uint64 chainId, address token);
    /// @notice The contract is registered as this asset type. A contract of this chain has one standard; only an ERC-20 has an asset for
    /// each quantum.
    error AssetAlreadyRegistered(uint64 chainId, address token, uint256 assetType);
    error AssetNotRegistered(uint64 chainId, uint256 assetType);
    /// @notice Not 1 to 2^128 - 1, or not 1 for an ERC-721 or ERC-1155.
    error QuantumInvalid(uint256 quantum);
    /// @notice The token says by ERC-165 that it is of another standard.
    error StandardMismatch(address token, Standard standard);
    /// @notice The token says by `quantum()` that it is quantized by another number.
    error QuantumMismatch(address token, uint256 quantum);
    error TokenWithoutCode(address token);
    /// @notice The token reads its blobs by this scheme: it says so by `blobScheme()`, or it says nothing and has nobody who could choose another.
    error SchemeMismatch(address token, BlobScheme scheme);
    /// @notice The token does not say how it reads its blobs, so its owner or admin registers it.
    error NotTokenOwner(address token, address caller);

    /// @notice Registers a token for ever. It grants nothing, since a withdrawal still needs the token's own minter role.
    /// @dev A token of this chain must have code. One that states its standard by ERC-165, its `quantum()` or its `blobScheme()` is registered
    /// only by that. An ERC-20 that states no quantum can have several, so a stranger who is faster keeps nobody's quantum out.
    /// A token with a `blobScheme()` can be registered by anyone. Another one only by its `owner()` or by who has its AccessControl's
    /// DEFAULT_ADMIN_ROLE, who also chooses the scheme; by anyone, as `Imx`, if it has neither.
    /// Vaults of batches that came before the registration do not count, so nobody can plant vaults of a token that does not exist yet.
    /// @param quantum Base units of one quantized unit.
    /// @param scheme How the token reads its blobs; `Imx` for a token of another chain.
    /// @return assetType StarkEx's asset type, 250 bits.
    function registerAsset(Standard standard, uint64 chainId, address token, uint256 quantum, BlobScheme scheme)
        external
        returns (uint256 assetType);

    /// @notice What an asset type stands for; `Standard.None` when nobody has registered it.
    /// @dev `since` is the sequence of the first batch whose vaults of the asset count.
    function asset(uint64 chainId, uint256 assetType)
        external
        view
        returns (Standard standard, address token, uint256 quantum, BlobScheme scheme, uint64 since);
}
