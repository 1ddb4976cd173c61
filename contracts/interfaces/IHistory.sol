// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {Mode} from "./Model.sol";

/// @title What the contract knows of the state that it has taken.
interface IHistory {
    /// @notice Most vaults of one rollup batch. So many fit a transaction in any case.
    function MAX_ROLLUP_VAULTS() external view returns (uint256);

    /// @notice One hash over all commits of both modes, in their order. Every commit names it and replaces it. It holds
    /// no block time, so that several commits can be under way at once. Before the first commit it is the commitment of
    /// the empty state.
    function history() external view returns (bytes32);
    function batchCounts() external view returns (uint64 validium, uint64 rollup);
    /// @notice Root of a mode's tree of batches.
    function stateRoot(Mode mode) external view returns (bytes32);
    /// @notice One hash over both roots and counts, this chain and this contract.
    function stateCommitment() external view returns (bytes32);
    /// @notice The contract whose code runs the functions of {ITransfers} here. Nothing can replace it. Zero: this
    /// deployment has no transfers.
    function transfersCode() external view returns (address);
    /// @notice ERC-721 is available from 4, ERC-20 and ERC-1155 from 5.
    function engineVersion() external pure returns (uint256);
}
