// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {IMintable} from "../interfaces/IMintable.sol";

/// @title A token that answers anything with more bytes than the caller can afford to copy.
/// @dev A megabyte costs about 2.2 million gas to allocate, here and again in a caller that copies
/// it.
contract ReturnBomb is IMintable {
    uint256 public immutable bytesReturned;
    bool public immutable reverts;

    constructor(uint256 bytesReturned_, bool reverts_) {
        bytesReturned = bytesReturned_;
        reverts = reverts_;
    }

    fallback() external {
        _answer();
    }

    function mintFor(address, uint256, bytes calldata) external view {
        _answer();
    }

    function _answer() private view {
        uint256 size = bytesReturned;
        bool fails = reverts;
        assembly ("memory-safe") {
            if fails {
                revert(0, size)
            }
            return(0, size)
        }
    }
}
