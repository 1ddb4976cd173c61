// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {IAssetRegistry} from "./IAssetRegistry.sol";
import {ICancellations} from "./ICancellations.sol";
import {ICommits} from "./ICommits.sol";
import {ICommittee} from "./ICommittee.sol";
import {IHistory} from "./IHistory.sol";
import {IIssuers} from "./IIssuers.sol";
import {IOperatorRoles} from "./IOperatorRoles.sol";
import {ITransfers} from "./ITransfers.sol";
import {IVaultProofs} from "./IVaultProofs.sol";
import {IWithdrawals} from "./IWithdrawals.sol";

/// @title The L1 side of Mintmark: append-only state, and withdrawals that need nobody's help.
/// @notice Everything off-chain can be rebuilt from this contract's events and the commits' calldata.
/// @dev The contract itself has {ICommits} and {IWithdrawals}. Its fallback runs the code of {Administration} for the
/// rest.
interface IStateCommitment is // solhint-disable-line no-empty-blocks
    ICommits,
    IWithdrawals,
    ITransfers,
    IHistory,
    IVaultProofs,
    ICancellations,
    IOperatorRoles,
    ICommittee,
    IAssetRegistry,
    IIssuers
{}
