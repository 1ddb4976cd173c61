// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {MintingBlobScheme, Mode, Standard} from "../interfaces/Model.sol";

/// @title The storage of assets, of batches' headers, and of what is withdrawn of each vault.
abstract contract VaultState {
    /// @dev Neither a vault's id, which has 64 bits, nor a digest that anybody finds.
    bytes32 internal constant ANY = bytes32(type(uint256).max);

    struct Asset {
        address token;
        Standard standard;
        MintingBlobScheme scheme;
        /// @dev Vaults of earlier batches do not count.
        uint64 since;
        /// @dev {TRANSFERABLE}, {ENTERED}, {MADE_ONLY}.
        uint8 flags;
        uint128 quantum;
    }

    /// @dev A word of a mapping. A pointer to it costs one hash for a read and a write.
    struct Word {
        uint256 bits;
    }

    mapping(uint64 chainId => mapping(uint256 assetType => Asset)) internal _assets;
    /// @dev The first asset of a contract of this chain, which fixes its standard. Only an ERC-20
    /// can have more, with other quanta.
    mapping(address token => uint256) internal _firstOf;
    mapping(Mode => mapping(uint64 batchNumber => bytes32)) internal _headers;
    /// @dev ERC-721: one bit a vault, withdrawn or voided. {VaultProofs-_placeOf} tells where.
    mapping(uint256 place => Word) internal _taken;
    /// @dev ERC-20, ERC-1155: 64 bits for each vault.
    mapping(uint256 place => Word) internal _withdrawn;
    /// @dev One bit for each vault: whether a committed record spends it. No bit is ever cleared.
    mapping(uint256 word => uint256 bits) internal _spent;
    /// @dev Cancellations by signer: the digests of lists, and the ids of vaults. {ANY} is set
    /// with the first, so that the lists of all other signers need one read.
    mapping(address signer => mapping(bytes32 id => bool)) internal _cancelled;
    /// @dev ERC-721: the making by which the id has entered last. Vaults of earlier ones, and of
    /// batches, do not count any more.
    mapping(uint256 assetType => mapping(uint256 tokenId => uint64 making)) internal _entries;
}
