// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {IMintable} from "../interfaces/IMintable.sol";

/// @title A token that calls its caller, or anyone, back while it mints.
contract ReentrantToken is IMintable {
    address private _target;
    bytes private _payload;

    uint256 public minted;
    bool public callSucceeded;
    bytes public callAnswer;

    /// @notice Sets the call that is made during the next mints.
    function arm(address target, bytes calldata payload) external {
        _target = target;
        _payload = payload;
    }

    function mintFor(address, uint256 quantity, bytes calldata) external {
        minted += quantity;
        if (_target != address(0)) (callSucceeded, callAnswer) = _target.call(_payload);
    }
}
