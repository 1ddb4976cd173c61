// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

/// @title A contract that forwards calls: an operator that is no plain account, in a call or while
/// it is being created.
contract ContractOperator {
    constructor(address target, bytes memory payload) {
        if (target != address(0)) _forward(target, payload);
    }

    function forward(address target, bytes memory payload) external {
        _forward(target, payload);
    }

    function _forward(address target, bytes memory payload) private {
        (bool succeeded, bytes memory answer) = target.call(payload);
        if (succeeded) return;
        assembly ("memory-safe") {
            revert(add(answer, 0x20), mload(answer))
        }
    }
}
