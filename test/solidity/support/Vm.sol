// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

/// @dev The test runner's cheat codes that these tests use.
interface Vm {
    function addr(uint256 privateKey) external pure returns (address);
    function assume(bool condition) external pure;
    function prank(address sender) external;
    function prank(address sender, address origin) external;
    function sign(uint256 privateKey, bytes32 digest) external pure returns (uint8 v, bytes32 r, bytes32 s);
    function warp(uint256 timestamp) external;
}

Vm constant vm = Vm(address(uint160(uint256(keccak256("hevm cheat code")))));
