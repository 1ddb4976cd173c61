// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {BlobScheme} from "../interfaces/Model.sol";
import {MintableERC721} from "../tokens/MintableERC721.sol";

/// @dev This project's ERC-721, for owners who transfer.
contract TransferableERC721 is MintableERC721 {
    constructor(
        string memory name,
        string memory symbol,
        string memory baseUri,
        BlobScheme scheme,
        Royalty memory royalty,
        address admin,
        address minter,
        address issuer_
    ) MintableERC721(name, symbol, baseUri, scheme, royalty, admin, minter, issuer_) {}

    function transferable() external pure returns (bool) {
        return true;
    }
}
