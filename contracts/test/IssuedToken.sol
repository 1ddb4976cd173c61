// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {IMintable} from "../interfaces/IMintable.sol";

/// @title A token that states no quantum and says whatever a test has it say of its issuer.
contract IssuedToken is IMintable {
    /// @notice Speaks for the token; the zero address when nobody does.
    address public immutable owner;
    bytes private _answer;

    mapping(address owner => uint256) public balanceOf;

    /// @param answer The answer of `issuer()`, byte for byte.
    constructor(bytes memory answer, address owner_) {
        owner = owner_;
        _answer = answer;
    }

    function issuer() external view returns (address) {
        bytes memory answer = _answer;
        assembly ("memory-safe") {
            return(add(answer, 0x20), mload(answer))
        }
    }

    function mintFor(address to, uint256 quantity, bytes calldata) external {
        balanceOf[to] += quantity;
    }
}
