// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {IMintable} from "../interfaces/IMintable.sol";

/// @title A token that burns gas at every question, so much of it or all there is.
contract GasBurner is IMintable {
    /// @notice Gas a mint burns; more than there is when it never ends.
    uint256 public immutable thirst;

    uint256 public minted;

    constructor(uint256 thirst_) {
        thirst = thirst_;
    }

    fallback() external {
        _burn(type(uint256).max);
    }

    function mintFor(address, uint256 quantity, bytes calldata) external {
        _burn(thirst);
        minted += quantity;
    }

    function _burn(uint256 most) private view {
        uint256 start = gasleft();
        if (most > start) {
            assembly ("memory-safe") {
                invalid()
            }
        }
        bytes32 busy;
        while (start - gasleft() < most) busy = keccak256(abi.encode(busy));
    }
}
