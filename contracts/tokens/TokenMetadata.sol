// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {ERC2981} from "@openzeppelin/contracts/token/common/ERC2981.sol";
import {Strings} from "@openzeppelin/contracts/utils/Strings.sol";
import {MintingBlobScheme} from "../interfaces/Model.sol";
import {ContractMetadata} from "./ContractMetadata.sol";
import {MinterLock} from "./MinterLock.sol";

/// @title Where each token's metadata is, the promise that this stays so, and the royalty of each
/// sale (ERC-2981).
abstract contract TokenMetadata is ERC2981, ContractMetadata {
    struct Royalty {
        /// @dev The zero address: no royalty.
        address receiver;
        /// @dev In ten-thousandths of the price.
        uint96 fraction;
    }

    /// @notice Whether the place of the tokens' metadata is fixed for ever.
    bool public baseURILocked;

    /// @dev ERC-4906. Indexers take it for ERC-1155 too.
    event BatchMetadataUpdate(uint256 _fromTokenId, uint256 _toTokenId);
    event BaseURILocked();

    error BaseURIIsLocked();

    constructor(Royalty memory royalty) {
        if (royalty.receiver != address(0)) _setDefaultRoyalty(royalty.receiver, royalty.fraction);
    }

    function supportsInterface(
        bytes4 id
    ) public view virtual override(ERC2981, MinterLock) returns (bool) {
        return super.supportsInterface(id);
    }

    /// @notice Moves the metadata of all tokens.
    /// @param uri ERC-721: what stands before each id. ERC-1155: a template with `{id}`.
    function setBaseURI(string calldata uri) external onlyRole(DEFAULT_ADMIN_ROLE) {
        if (baseURILocked) revert BaseURIIsLocked();
        _storeBaseURI(uri);
        emit BatchMetadataUpdate(0, type(uint256).max);
    }

    /// @notice Fixes the base for ever. The content there needs its own promise: an `ipfs://` base,
    /// or metadata that the engine has frozen.
    function lockBaseURI() external onlyRole(DEFAULT_ADMIN_ROLE) {
        baseURILocked = true;
        emit BaseURILocked();
    }

    /// @notice Tells marketplaces to read these tokens' metadata again, for example after a reveal.
    function refreshMetadata(
        uint256 fromTokenId,
        uint256 toTokenId
    ) external onlyRole(DEFAULT_ADMIN_ROLE) {
        emit BatchMetadataUpdate(fromTokenId, toTokenId);
    }

    /// @dev The minting blob by which `mintFor` mints an id. Without a blueprint it changes none.
    function _mintingBlobOf(uint256 id) internal view returns (bytes memory) {
        string memory decimal = Strings.toString(id);
        return
            mintingBlobScheme == MintingBlobScheme.Mintmark
                ? bytes(decimal)
                : abi.encodePacked("{", decimal, "}:{}");
    }

    function _storeBaseURI(string calldata uri) internal virtual;
}
