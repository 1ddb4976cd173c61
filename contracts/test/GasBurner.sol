// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {IMintable} from "../interfaces/IMintable.sol";

/// @title A token whose mint never ends, nor its answer to any other question.
contract GasBurner is IMintable {
    uint256 public turns;

    fallback() external {
        _burn();
    }

    function mintFor(address, uint256, bytes calldata) external {
        _burn();
    }

    function _burn() private {
        while (true) ++turns;
    }
}
