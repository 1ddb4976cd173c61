// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {ERC721A} from "erc721a/contracts/ERC721A.sol";

/// @title The ERC-721 made for cheap mints in a row, for comparison.
contract PlainERC721A is ERC721A {
    constructor() ERC721A("Plain A", "PLAINA") {}

    function mint(address to, uint256 quantity) external {
        _mint(to, quantity);
    }

    function mintMany(address[] calldata owners) external {
        for (uint256 i; i < owners.length; ++i) {
            _mint(owners[i], 1);
        }
    }
}
