// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {Authorization, Vault} from "../../../contracts/interfaces/Model.sol";

/// @dev The items of `withdrawBatch`, written field by field as docs/protocol.md 6 lists them.
library Packing {
    function item(Vault memory vault, bytes32[] memory siblings, uint64 quantity, address recipient, Authorization memory authorization)
        internal
        pure
        returns (bytes memory)
    {
        bytes memory signature = authorization.signature;
        bytes memory who = abi.encodePacked(
            uint8(signature.length == 0 ? 3 : 7), vault.owner, recipient, vault.amount, quantity
        );
        if (signature.length != 0) who = abi.encodePacked(who, authorization.deadline, uint16(signature.length), signature);
        return framed(vault.vaultId, abi.encodePacked(who, uint8(vault.blob.length), vault.blob, siblings));
    }

    /// @dev An item of a list.
    function listed(Vault memory vault, bytes32[] memory siblings, uint8 number, uint16 position) internal pure returns (bytes memory) {
        bytes memory head = abi.encodePacked(uint8(10), number, position, vault.amount);
        return framed(vault.vaultId, abi.encodePacked(head, uint8(vault.blob.length), vault.blob, siblings));
    }

    /// @param vaults 24 bytes for each.
    function list(address owner, address recipient, uint64 deadline, bytes memory vaults, bytes memory signature)
        internal
        pure
        returns (bytes memory)
    {
        return abi.encodePacked(owner, recipient, deadline, uint16(vaults.length / 24), vaults, signature);
    }

    function framed(uint64 vaultId, bytes memory body) internal pure returns (bytes memory) {
        return abi.encodePacked(uint16(body.length), uint24(vaultId & 0xfffff), body);
    }
}
