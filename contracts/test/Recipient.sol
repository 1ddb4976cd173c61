// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {IERC1155Receiver} from "@openzeppelin/contracts/token/ERC1155/IERC1155Receiver.sol";
import {IERC165} from "@openzeppelin/contracts/utils/introspection/IERC165.sol";
import {ERC165} from "@openzeppelin/contracts/utils/introspection/ERC165.sol";

/// @title A recipient of ERC-1155 tokens that makes a call when it is handed some.
contract Recipient is IERC1155Receiver, ERC165 {
    address private _target;
    bytes private _payload;

    bool public callSucceeded;
    bytes public callAnswer;

    function arm(address target, bytes calldata payload) external {
        _target = target;
        _payload = payload;
    }

    function onERC1155Received(
        address,
        address,
        uint256,
        uint256,
        bytes calldata
    ) external returns (bytes4) {
        if (_target != address(0)) (callSucceeded, callAnswer) = _target.call(_payload);
        return this.onERC1155Received.selector;
    }

    function onERC1155BatchReceived(
        address,
        address,
        uint256[] calldata,
        uint256[] calldata,
        bytes calldata
    ) external pure returns (bytes4) {
        return this.onERC1155BatchReceived.selector;
    }

    function supportsInterface(bytes4 id) public view override(ERC165, IERC165) returns (bool) {
        return id == type(IERC1155Receiver).interfaceId || super.supportsInterface(id);
    }
}
