// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

/// @title The protocol's hashing: nodes, paths, zero subtrees.
library Merkle {
    /// @notice keccak256(0x01 ‖ left ‖ right).
    function node(bytes32 left, bytes32 right) internal pure returns (bytes32 hash) {
        assembly ("memory-safe") {
            // 65 bytes from 0x1f: the prefix, then the scratch space up to 0x60; the free memory pointer's top byte at 0x40 is overwritten
            // by `right` and put back.
            let free := mload(0x40)
            mstore8(0x1f, 1)
            mstore(0x20, left)
            mstore(0x40, right)
            hash := keccak256(0x1f, 65)
            mstore(0x40, free)
        }
    }
}
