// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

/// @dev The trees of docs/protocol.md 2 and 3 as one would write them without a thought to gas.
library NaiveTree {
    function node(bytes32 left, bytes32 right) internal pure returns (bytes32) {
        return keccak256(abi.encodePacked(uint8(1), left, right));
    }

    /// @dev Root of a tree of some height whose first leaves are given, the others zero.
    function root(bytes32[] memory leaves, uint256 height) internal pure returns (bytes32) {
        return _subtree(leaves, _zeros(height), 0, height);
    }

    function siblings(bytes32[] memory leaves, uint256 height, uint256 position) internal pure returns (bytes32[] memory path) {
        path = new bytes32[](height);
        bytes32[] memory zeros = _zeros(height);
        for (uint256 h; h < height; ++h) path[h] = _subtree(leaves, zeros, ((position >> h) ^ 1) << h, h);
    }

    /// @dev ceil(log2 count).
    function heightOf(uint256 count) internal pure returns (uint256 height) {
        while (2 ** height < count) ++height;
    }

    function _subtree(bytes32[] memory leaves, bytes32[] memory zeros, uint256 start, uint256 height) private pure returns (bytes32) {
        if (start >= leaves.length) return zeros[height];
        if (height == 0) return leaves[start];
        bytes32 left = _subtree(leaves, zeros, start, height - 1);
        return node(left, _subtree(leaves, zeros, start + 2 ** (height - 1), height - 1));
    }

    /// @dev Roots of empty subtrees by height. Once a tree: the invariants build thousands.
    function _zeros(uint256 height) private pure returns (bytes32[] memory zeros) {
        zeros = new bytes32[](height + 1);
        for (uint256 h; h < height; ++h) zeros[h + 1] = node(zeros[h], zeros[h]);
    }
}
