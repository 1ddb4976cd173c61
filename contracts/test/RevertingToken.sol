// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {IMintable} from "../interfaces/IMintable.sol";

/// @title A token that refuses every mint until it is told to stop refusing.
contract RevertingToken is IMintable {
    error Refused(address to, uint256 quantity, bytes mintingBlob);

    bool public refusing = true;
    mapping(address owner => uint256) public balanceOf;

    function setRefusing(bool refusing_) external {
        refusing = refusing_;
    }

    function mintFor(address to, uint256 quantity, bytes calldata mintingBlob) external {
        if (refusing) revert Refused(to, quantity, mintingBlob);
        balanceOf[to] += quantity;
    }
}
