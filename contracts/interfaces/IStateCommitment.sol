// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {IERC5267} from "@openzeppelin/contracts/interfaces/IERC5267.sol";
import {IAssetRegistry} from "./IAssetRegistry.sol";
import {ICommits} from "./ICommits.sol";
import {ICommittee} from "./ICommittee.sol";
import {IIssuers} from "./IIssuers.sol";
import {IOperatorRoles} from "./IOperatorRoles.sol";
import {IMakings} from "./IMakings.sol";
import {ITransfers} from "./ITransfers.sol";
import {Mode} from "./Model.sol";
import {IVaultProofs} from "./IVaultProofs.sol";
import {ICancellations, IWithdrawals} from "./IWithdrawals.sol";

/// @title The state that the contract has taken.
interface IHistory {
    /// @notice Most vaults of one rollup batch. So many fit a transaction in any case.
    function MAX_ROLLUP_VAULTS() external view returns (uint256);

    /// @notice One hash over all commits of both modes, in their order. Every commit names it and
    /// replaces it. It holds no block time, so that several commits can be under way at once.
    /// Before the first commit it is the commitment of the empty state.
    function history() external view returns (bytes32);
    function batchCounts() external view returns (uint64 validium, uint64 rollup);
    /// @notice How many makings there are ({IMakings}). The first is number 1.
    function makings() external view returns (uint64);
    /// @notice The making by which an ERC-721 token of this chain has entered last; 0 for never.
    function latestEntry(uint256 assetType, uint256 tokenId) external view returns (uint64);
    /// @notice Root of a mode's tree of batches.
    function stateRoot(Mode mode) external view returns (bytes32);
    /// @notice One hash over both roots and counts, this chain and this contract.
    function stateCommitment() external view returns (bytes32);
    /// @notice ERC-721 is available from 4, ERC-20 and ERC-1155 from 5.
    function engineVersion() external pure returns (uint256);
}

/// @title The terms that the constructor has fixed for ever. The contract itself answers, and no
/// borrowed code.
interface IDeployment {
    /// @notice The contract whose code runs all functions but those of {ICommits}, {IWithdrawals},
    /// {ITransfers} and {IMakings}.
    function administrationCode() external view returns (address);
    /// @notice The contract whose code runs the functions of {ITransfers}. Zero: this deployment
    /// has no transfers.
    function transfersCode() external view returns (address);
    /// @notice The contract whose code runs the functions of {IMakings}. Zero: this deployment
    /// makes no vaults.
    function makingsCode() external view returns (address);
    /// @notice Seconds between the announcement of a change of roles and the change.
    function changeDelay() external view returns (uint64);
}

/// @title The L1 side of Mintmark: append-only state, and withdrawals that need nobody's help.
/// @notice Everything off-chain can be rebuilt from this contract's events and the commits'
/// calldata.
/// @dev The contract itself has {ICommits}, {IWithdrawals} and {IDeployment}. Its fallback runs the
/// code of {Administration} for the rest.
// solhint-disable no-empty-blocks
interface IStateCommitment is
    ICommits,
    IWithdrawals,
    IDeployment,
    ITransfers,
    IMakings,
    IHistory,
    IVaultProofs,
    ICancellations,
    IOperatorRoles,
    ICommittee,
    IAssetRegistry,
    IIssuers,
    IERC5267
{}
