// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {EIP712} from "@openzeppelin/contracts/utils/cryptography/EIP712.sol";
import {TypedData} from "./TypedData.sol";

/// @title Digests with the domain's hash in the code, which saves gas.
abstract contract OwnTypedData is TypedData, EIP712 {
    constructor() EIP712("Mintmark", "1") {} // solhint-disable-line no-empty-blocks

    function _digestOf(bytes32 message) internal view override returns (bytes32) {
        return _hashTypedDataV4(message);
    }
}
