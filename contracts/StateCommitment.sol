// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {EIP712} from "@openzeppelin/contracts/utils/cryptography/EIP712.sol";
import {Vault} from "./interfaces/Model.sol";
import {BlobVaults} from "./libraries/BlobVaults.sol";
import {Administration} from "./state/Administration.sol";
import {Commits} from "./state/Commits.sol";
import {GUARDIAN, OPERATOR} from "./state/Roles.sol";
import {Withdrawals} from "./state/Withdrawals.sol";

/// @title The settlement contract: append-only state of all mints, and the exit of their owners.
/// @notice No proxy and no upgrade. A successor is a new contract and imports nothing. This contract keeps its minter
/// roles, so that owners can always withdraw.
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

    /// @dev A contract that lends only its code. The constructor creates it, and nothing can replace it. Both have the
    /// same storage layout; a test compares them.
    address private immutable _administration;

    constructor(Config memory config) EIP712("Mintmark", "1") Withdrawals(config.maturity) {
        _administration = address(new Administration(config.changeDelay));
        _grantFirst(0, config.admin);
        _grantFirst(GUARDIAN, config.guardian);
        _grantFirst(OPERATOR, config.operator);
        _setCommittee(config.committee, config.threshold, 0);
    }

    /// @notice Runs every other function of {IStateCommitment} with the code of {Administration} on this contract's
    /// storage, and returns its answer. It takes no ether, and reverts when neither contract has the function.
    // solhint-disable-next-line no-complex-fallback
    fallback() external {
        address code = _administration;
        assembly ("memory-safe") {
            let free := mload(0x40)
            calldatacopy(free, 0, calldatasize())
            let done := delegatecall(gas(), code, free, calldatasize(), 0, 0)
            returndatacopy(free, 0, returndatasize())
            if iszero(done) { revert(free, returndatasize()) }
            return(free, returndatasize())
        }
    }

    /// @dev Here for the usual vaults, by the {Administration} for the others, whose code would not fit.
    function _opened(Vault memory vault, uint256 assetIndex, BlobVaults.Batch memory batch, bytes32[] calldata path)
        internal
        view
        override
        returns (bool)
    {
        uint256 head = BlobVaults.headOf(vault, assetIndex);
        if (head != 0) return BlobVaults.openedHead(vault.vaultId, head, batch, path);
        return Administration(_administration).opened(vault, assetIndex, batch, path);
    }
}
