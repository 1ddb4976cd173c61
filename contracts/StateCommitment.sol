// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {EIP712} from "@openzeppelin/contracts/utils/cryptography/EIP712.sol";
import {Committee} from "./state/Committee.sol";
import {Commits} from "./state/Commits.sol";
import {TimeLockedRoles} from "./state/TimeLockedRoles.sol";
import {Withdrawals} from "./state/Withdrawals.sol";

/// @title The settlement contract: append-only state of all mints, and the exit of their owners.
/// @notice No proxy and no upgrade. A successor is a new contract that imports nothing; this one keeps its minter roles for its owners.
contract StateCommitment is Commits {
    struct Config {
        /// @dev Schedules operators and committees. A time lock or multisig.
        address admin;
        /// @dev Pauses committing, revokes operators. Never touches withdrawing.
        address guardian;
        /// @dev A plain account: rollup data must be its transaction's own input.
        address operator;
        /// @dev Strictly ascending.
        address[] committee;
        uint8 threshold;
        /// @dev Seconds that a new operator or committee is announced before it is active.
        uint64 changeDelay;
        /// @dev Seconds that an ERC-721 vault waits after its commit; see {voidDuplicate}.
        uint64 maturity;
    }

    constructor(Config memory config)
        EIP712("Mintmark", "1")
        Committee(config.admin, config.changeDelay)
        TimeLockedRoles(config.guardian, config.operator)
        Withdrawals(config.maturity)
    {
        _setCommittee(config.committee, config.threshold, 0);
    }

    /// @notice The engine version: ERC-721 is available from 4, ERC-20 and ERC-1155 from 5.
    function engineVersion() external pure returns (uint256) {
        return 5;
    }
}
