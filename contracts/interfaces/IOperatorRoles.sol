// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

/// @title Operators: the accounts that may commit.
interface IOperatorRoles {
    /// @param activeFrom Seconds since 1970; 0 when the announcement is withdrawn.
    event OperatorScheduled(address indexed operator, uint64 activeFrom);
    event CommitsPaused(bool paused);

    /// @notice The operator's role is granted by {scheduleOperator} and {activateOperator} only.
    error OperatorNotTimeLocked();

    /// @notice Announces an operator. Administrator only.
    function scheduleOperator(address operator) external;
    /// @notice Grants the role once the delay has passed. Anyone may call this.
    function activateOperator(address operator) external;
    /// @notice Withdraws the announcement; administrator or guardian.
    function cancelOperator(address operator) external;
    /// @notice Removes the role and any announcement at once. Administrator or guardian.
    function revokeOperator(address operator) external;

    /// @notice Stops or resumes commits. Administrator or guardian. Nobody can stop withdrawals.
    function pauseCommits(bool paused) external;
}
