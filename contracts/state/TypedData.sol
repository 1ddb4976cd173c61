// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

/// @title The digests of the EIP-712 messages that this contract reads.
abstract contract TypedData {
    /// @param message The message's struct hash.
    function _digestOf(bytes32 message) internal view virtual returns (bytes32);
}
