// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

/// @title A token of somebody else: an ERC-721 of the Immutable X kind, which offers `mintFor` and
/// nothing that names it.
/// @dev Reads `{id}:{blueprint}` as those tokens do, leniently: digits anywhere before the colon
/// count, other bytes and leading zeros do not, so that one token has many spellings. No ERC-165,
/// no access control worth the name, no minting blob scheme.
contract ImxToken {
    // IMX tokens have no custom errors.
    // solhint-disable gas-custom-errors

    address private immutable _minter;

    mapping(uint256 tokenId => address) public ownerOf;
    mapping(uint256 tokenId => bytes) public blueprints;

    constructor(address minter) {
        _minter = minter;
    }

    function mintFor(address to, uint256 quantity, bytes calldata mintingBlob) external {
        require(msg.sender == _minter, "Only IMX can call");
        require(quantity == 1, "Mintable: invalid quantity");
        uint256 colon;
        while (mintingBlob[colon] != ":") ++colon;
        uint256 id;
        for (uint256 i = 1; i < colon - 1; ++i) {
            uint256 digit = uint256(uint8(mintingBlob[i])) ^ 0x30;
            if (digit < 10) id = id * 10 + digit;
        }
        require(ownerOf[id] == address(0), "ERC721: token already minted");
        ownerOf[id] = to;
        blueprints[id] = mintingBlob[colon + 2:mintingBlob.length - 1];
    }
}
