// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {ERC1155} from "@openzeppelin/contracts/token/ERC1155/ERC1155.sol";
import {ERC1155Supply} from "@openzeppelin/contracts/token/ERC1155/extensions/ERC1155Supply.sol";
import {MintingBlobScheme, Standard} from "../interfaces/Model.sol";
import {AssetEncoding} from "../libraries/AssetEncoding.sol";
import {MintingBlob} from "../libraries/MintingBlob.sol";
import {MinterLock} from "./MinterLock.sol";
import {TokenMetadata} from "./TokenMetadata.sol";

/// @title An ERC-1155 that the settlement contract mints on withdrawal.
contract MintableERC1155 is ERC1155Supply, TokenMetadata {
    string public name;
    string public symbol;

    /// @param issuer_ The issuer that must consent to mints; the zero address for none.
    /// @param transferable_ Whether owners can give vaults away before they withdraw.
    constructor(
        string memory name_,
        string memory symbol_,
        string memory uri_,
        MintingBlobScheme scheme,
        Royalty memory royalty,
        address admin,
        address minter,
        address issuer_,
        bool transferable_
    )
        ERC1155(uri_)
        MinterLock(
            admin,
            minter,
            scheme,
            issuer_,
            transferable_,
            AssetEncoding.assetType(Standard.ERC1155, address(this), 1)
        )
        TokenMetadata(royalty)
    {
        name = name_;
        symbol = symbol_;
    }

    function mintFor(
        address to,
        uint256 quantity,
        bytes calldata mintingBlob
    ) external onlyRole(MINTER_ROLE) {
        uint256 id;
        if (mintingBlobScheme == MintingBlobScheme.Mintmark) id = MintingBlob.tokenId(mintingBlob);
        else (id, ) = MintingBlob.imxTokenId(mintingBlob);
        _mint(to, id, quantity, "");
    }

    /// @notice Burns units of the caller and makes a vault of them.
    function enter(address owner, uint256 id, uint256 amount) external returns (uint64 vaultId) {
        _burn(msg.sender, id, amount);
        return _makeVault(owner, amount, _mintingBlobOf(id));
    }

    function supportsInterface(
        bytes4 id
    ) public view override(ERC1155, TokenMetadata) returns (bool) {
        return super.supportsInterface(id);
    }

    function _storeBaseURI(string calldata uri) internal override {
        _setURI(uri);
    }
}
