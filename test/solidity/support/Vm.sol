// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

/// @dev The test runner's cheat codes that these tests use.
interface Vm {
    function addr(uint256 privateKey) external pure returns (address);
    function etch(address target, bytes calldata code) external;
    function parseJsonBytes(string calldata json, string calldata key) external pure returns (bytes memory);
    function prank(address sender) external;
    function prank(address sender, address origin) external;
    function readFile(string calldata path) external view returns (string memory);
    function sign(uint256 privateKey, bytes32 digest) external pure returns (uint8 v, bytes32 r, bytes32 s);
    function warp(uint256 timestamp) external;
}

Vm constant vm = Vm(address(uint160(uint256(keccak256("hevm cheat code")))));

/// @dev Deploys a contract from its artifact, `<source>/<contract>`: those under contracts/ as compiled for production. With `new`,
/// the compiler would compile the contract once more inside of each contract that deploys it.
function deploy(string memory artifact, bytes memory arguments) returns (address deployed) {
    bytes memory code = abi.encodePacked(vm.parseJsonBytes(artifactOf(artifact), ".bytecode"), arguments);
    assembly ("memory-safe") {
        deployed := create(0, add(code, 0x20), mload(code))
    }
    require(deployed != address(0), "not deployed");
}

/// @dev Puts a contract without a constructor at a fixed address, so that the contracts after it have theirs as ever.
function place(string memory artifact) returns (address placed) {
    placed = address(uint160(uint256(keccak256(bytes(artifact)))));
    vm.etch(placed, vm.parseJsonBytes(artifactOf(artifact), ".deployedBytecode"));
}

function artifactOf(string memory name) view returns (string memory) {
    return vm.readFile(string.concat("artifacts/", name, ".json"));
}
