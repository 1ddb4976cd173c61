// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {EIP712} from "@openzeppelin/contracts/utils/cryptography/EIP712.sol";
import {Committee} from "./Committee.sol";
import {SettlementState} from "./SettlementState.sol";

/// @title What the settlement contract does apart from commits and exits: who may act, and which assets there are.
/// @dev Its code, which is fixed for ever, runs over the settlement contract's storage: both together would be more than a chain takes for
/// one contract. By itself it has no roles, and nothing depends on its own storage.
contract Administration is SettlementState {
    constructor(uint64 changeDelay) EIP712("Mintmark", "1") Committee(changeDelay) {}
}
