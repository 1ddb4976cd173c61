// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {ERC721} from "@openzeppelin/contracts/token/ERC721/ERC721.sol";
import {MintingBlobScheme, Standard} from "../interfaces/Model.sol";
import {AssetEncoding} from "../libraries/AssetEncoding.sol";
import {MintingBlob} from "../libraries/MintingBlob.sol";
import {MinterLock} from "./MinterLock.sol";
import {TokenMetadata} from "./TokenMetadata.sol";

/// @title An ERC-721 that the settlement contract mints on withdrawal.
contract MintableERC721 is ERC721, TokenMetadata {
    bytes4 private constant ERC4906_INTERFACE = 0x49064906;

    string private _base;

    /// @notice The blueprint of a token, the part of an `imx` minting blob besides the id; empty
    /// for other schemes.
    mapping(uint256 tokenId => bytes) public blueprints;

    error QuantityNotOne(uint256 quantity);

    /// @param issuer_ The issuer that must consent to mints; the zero address for none.
    /// @param transferable_ Whether owners can give vaults away before they withdraw.
    constructor(
        string memory name,
        string memory symbol,
        string memory baseUri,
        MintingBlobScheme scheme,
        Royalty memory royalty,
        address admin,
        address minter,
        address issuer_,
        bool transferable_
    )
        ERC721(name, symbol)
        MinterLock(
            admin,
            minter,
            scheme,
            issuer_,
            transferable_,
            AssetEncoding.assetType(Standard.ERC721, address(this), 1)
        )
        TokenMetadata(royalty)
    {
        _base = baseUri;
    }

    function mintFor(
        address to,
        uint256 quantity,
        bytes calldata mintingBlob
    ) external onlyRole(MINTER_ROLE) {
        if (quantity != 1) revert QuantityNotOne(quantity);
        if (mintingBlobScheme == MintingBlobScheme.Mintmark) {
            _mint(to, MintingBlob.tokenId(mintingBlob));
        } else {
            (uint256 id, uint256 blueprint) = MintingBlob.imxTokenId(mintingBlob);
            bytes calldata text = mintingBlob[blueprint:mintingBlob.length - 1];
            if (text.length != 0) blueprints[id] = text;
            _mint(to, id);
        }
    }

    /// @notice Burns the caller's token and makes a vault of it. Its older vaults end.
    /// @dev An approval is not enough. The blueprint stays for the next mint of the id.
    function enter(address owner, uint256 tokenId) external returns (uint64 vaultId) {
        address holder = _update(address(0), tokenId, address(0));
        if (holder != msg.sender) revert ERC721IncorrectOwner(msg.sender, tokenId, holder);
        return _makeVault(owner, 1, _mintingBlobOf(tokenId));
    }

    function supportsInterface(
        bytes4 id
    ) public view override(ERC721, TokenMetadata) returns (bool) {
        return id == ERC4906_INTERFACE || super.supportsInterface(id);
    }

    function _baseURI() internal view override returns (string memory) {
        return _base;
    }

    function _storeBaseURI(string calldata uri) internal override {
        _base = uri;
    }
}
