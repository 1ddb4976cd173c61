// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {MintingBlobScheme, Standard} from "./Model.sol";

/// @title The registry of asset types and their token contracts.
interface IAssetRegistry {
    /// @param scheme How a token of this chain reads its minting blobs. It has no meaning for a
    /// token of another chain: the registry of the mirror there says it.
    event AssetRegistered(
        uint256 indexed assetType,
        uint64 indexed chainId,
        address indexed token,
        Standard standard,
        uint256 quantum,
        MintingBlobScheme scheme
    );
    /// @notice Comes behind {AssetRegistered}: owners can transfer vaults of the asset.
    event AssetTransferable(uint256 indexed assetType, uint64 indexed chainId);
    /// @notice Comes last: of the asset, only vaults count that L1 has made.
    event AssetMadeOnly(uint256 indexed assetType, uint64 indexed chainId);

    /// @notice The standard, the chain or the token is missing.
    error AssetInvalid(Standard standard, uint64 chainId, address token);
    /// @notice The contract is registered already, as this asset type. A contract of this chain has
    /// one standard. Only an ERC-20 can have several assets, one for each quantum.
    error AssetAlreadyRegistered(uint64 chainId, address token, uint256 assetType);
    error AssetNotRegistered(uint64 chainId, uint256 assetType);
    /// @notice A quantum is 1 to 2^128 - 1, and 1 for an ERC-721 or ERC-1155.
    error QuantumInvalid(uint256 quantum);
    /// @notice The token states another standard by ERC-165.
    error StandardMismatch(address token, Standard standard);
    /// @notice The token states another quantum by `quantum()`.
    error QuantumMismatch(address token, uint256 quantum);
    error TokenWithoutCode(address token);
    /// @notice Only vaults count that the settlement contract makes of the token, and a mirror has
    /// none of them.
    error TokenMadeOnly(address token);
    /// @notice The token reads its minting blobs by this scheme. It says so by
    /// `mintingBlobScheme()`, or it says nothing and nobody can choose another scheme for it.
    error SchemeMismatch(address token, MintingBlobScheme scheme);
    /// @notice The token does not say how it reads its minting blobs, so only its owner or admin
    /// can register it.
    error NotTokenOwner(address token, address caller);

    /// @notice Registers a token for ever. Registration grants nothing: a withdrawal still needs
    /// the token's own minter role.
    /// @dev A token of this chain must have code. If it states its standard by ERC-165, its
    /// `quantum()` or its `mintingBlobScheme()`, it is registered with exactly that. An ERC-20
    /// without a `quantum()` can have several, so a stranger cannot block a quantum by registering
    /// first. Anyone can register a token that has a `mintingBlobScheme()`. Without it, only the
    /// token's `owner()` or an account with the DEFAULT_ADMIN_ROLE of its AccessControl can, and
    /// chooses the scheme. A token with neither can be registered by anyone, as `Imx`. Vaults of
    /// batches before the registration do not count, so nobody can plant vaults of a token that
    /// does not exist yet.
    /// @param quantum Base units of one quantized unit.
    /// @param scheme How the token reads its minting blobs; `Imx` for a token of another chain.
    /// @return assetType StarkEx's asset type, 250 bits.
    function registerAsset(
        Standard standard,
        uint64 chainId,
        address token,
        uint256 quantum,
        MintingBlobScheme scheme
    ) external returns (uint256 assetType);

    /// @notice The token of an asset type; `Standard.None` when nobody has registered it.
    /// @dev `since` is the sequence of the first batch whose vaults of the asset count.
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
        );

    /// @notice Whether owners can transfer vaults of the asset, for ever. The token said so by
    /// `transferable()` when it was registered. Never for a token of another chain, nor on a
    /// mirror, nor where {IDeployment-transfersCode} is zero.
    function isTransferable(uint64 chainId, uint256 assetType) external view returns (bool);

    /// @notice Whether of the asset only vaults count that L1 has made ({IMakings-make}), for ever:
    /// no operator can mint it. The token said so by `madeOnly()` when it was registered.
    function isMadeOnly(uint64 chainId, uint256 assetType) external view returns (bool);
}
