// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

/// @dev The trees of docs/protocol.md 2 and 3 as one would write them without a thought to gas.
library NaiveTree {
    function node(bytes32 left, bytes32 right) internal pure returns (bytes32) {
        return keccak256(abi.encodePacked(uint8(1), left, right));
    }

    /// @dev Root of a tree of some height whose first leaves are given, the others zero.
    function root(bytes32[] memory leaves, uint256 height) internal pure returns (bytes32) {
        return _subtree(leaves, 0, height);
    }

    function siblings(bytes32[] memory leaves, uint256 height, uint256 position) internal pure returns (bytes32[] memory path) {
        path = new bytes32[](height);
        for (uint256 h; h < height; ++h) path[h] = _subtree(leaves, ((position >> h) ^ 1) << h, h);
    }

    /// @dev ceil(log2 count).
    function heightOf(uint256 count) internal pure returns (uint256 height) {
        while (2 ** height < count) ++height;
    }

    function _subtree(bytes32[] memory leaves, uint256 start, uint256 height) private pure returns (bytes32) {
        if (start >= leaves.length) return _zero(height);
        if (height == 0) return leaves[start];
        return node(_subtree(leaves, start, height - 1), _subtree(leaves, start + 2 ** (height - 1), height - 1));
    }

    function _zero(uint256 height) private pure returns (bytes32 zero) {
        for (uint256 h; h < height; ++h) zero = node(zero, zero);
    }
}
