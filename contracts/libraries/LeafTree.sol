// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

/// @title Computes the root of a batch's leaves, which lie in memory.
/// @notice Overwrites the leaves, 256 bytes in front of them and at most 320 behind them. All of
/// this memory must be free.
library LeafTree {
    /// @dev Folds the leaves in place, three levels at a time while there are more than four nodes,
    /// then one at a time. A pair's prefix overwrites the byte in front of the pair, which is no
    /// longer needed. A parent overwrites its children or earlier nodes.
    function fold(uint256 leaves, uint256 count) internal pure returns (bytes32 result) {
        assembly ("memory-safe") {
            function parent(zero, scratch) -> hash {
                mstore8(scratch, 1)
                mstore(add(scratch, 1), zero)
                mstore(add(scratch, 33), zero)
                hash := keccak256(scratch, 65)
            }

            // Two preimages of 0x01 ‖ left ‖ right in front of the leaves, for the upper two of
            // three levels.
            let low := sub(leaves, 0x100)
            let high := sub(leaves, 0x80)
            mstore8(low, 1)
            mstore8(high, 1)
            let zero := 0
            for {} gt(count, 4) {} {
                let end := add(leaves, shl(5, count))
                // Rounded up to a multiple of eight. Surplus nodes do no harm, because zero
                // subtrees hash to the zero roots.
                let padded := add(leaves, shl(8, shr(3, add(count, 7))))
                for {
                    let gap := end
                } lt(gap, padded) {
                    gap := add(gap, 32)
                } {
                    mstore(gap, zero)
                }
                let to := leaves
                for {
                    let pair := sub(leaves, 1)
                } lt(pair, sub(padded, 1)) {
                    pair := add(pair, 256)
                } {
                    mstore8(pair, 1)
                    mstore(add(low, 1), keccak256(pair, 65))
                    mstore8(add(pair, 64), 1)
                    mstore(add(low, 33), keccak256(add(pair, 64), 65))
                    mstore(add(high, 1), keccak256(low, 65))
                    mstore8(add(pair, 128), 1)
                    mstore(add(low, 1), keccak256(add(pair, 128), 65))
                    mstore8(add(pair, 192), 1)
                    mstore(add(low, 33), keccak256(add(pair, 192), 65))
                    mstore(add(high, 33), keccak256(low, 65))
                    mstore(to, keccak256(high, 65))
                    to := add(to, 32)
                }
                count := shr(3, add(count, 7))
                zero := parent(parent(parent(zero, padded), padded), padded)
            }
            for {} gt(count, 1) {} {
                mstore(add(leaves, shl(5, count)), zero)
                count := shr(1, add(count, 1))
                for {
                    let i := 0
                } lt(i, count) {
                    i := add(i, 1)
                } {
                    let pair := add(leaves, sub(shl(6, i), 1))
                    mstore8(pair, 1)
                    mstore(add(leaves, shl(5, i)), keccak256(pair, 65))
                }
                zero := parent(zero, add(leaves, 0x100))
            }
            result := mload(leaves)
        }
    }
}
