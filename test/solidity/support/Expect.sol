// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

/// @dev A test's expectation that did not hold.
error Unexpected(string what);

function expect(bool condition, string memory what) pure {
    if (!condition) revert Unexpected(what);
}
