// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {ERC20} from "@openzeppelin/contracts/token/ERC20/ERC20.sol";

/// @title OpenZeppelin's ERC-20 and nothing around it.
contract PlainERC20 is ERC20("Plain", "PLAIN") {
    function mint(address to, uint256 amount) external {
        _mint(to, amount);
    }
}
