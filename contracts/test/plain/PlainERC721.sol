// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {ERC721} from "@openzeppelin/contracts/token/ERC721/ERC721.sol";

/// @title A mint's cost without an L2: OpenZeppelin's ERC-721 and nothing around it, not even
/// access control.
contract PlainERC721 is ERC721 {
    constructor() ERC721("Plain", "PLAIN") {}

    function mint(address to, uint256 tokenId) external {
        _mint(to, tokenId);
    }

    function mintMany(address[] calldata owners, uint256 firstTokenId) external {
        for (uint256 i; i < owners.length; ++i) {
            _mint(owners[i], firstTokenId + i);
        }
    }
}
