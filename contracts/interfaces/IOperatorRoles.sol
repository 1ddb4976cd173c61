// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

/// @title Who may commit, and how that changes.
interface IOperatorRoles {
    /// @param activeFrom Seconds since 1970; 0 when the announcement is withdrawn.
    event OperatorScheduled(address indexed operator, uint64 activeFrom);
    event CommitsPaused(bool paused);

    /// @notice The operator's role is granted by {scheduleOperator} and {activateOperator} only.
    error OperatorNotTimeLocked();

    /// @notice Announces an operator; administrator only.
    function scheduleOperator(address operator) external;
    /// @notice Grants the role once the delay has passed. Anyone may.
    function activateOperator(address operator) external;
    /// @notice Withdraws the announcement; administrator or guardian.
    function cancelOperator(address operator) external;
    /// @notice Takes the role and any announcement away at once; administrator or guardian.
    function revokeOperator(address operator) external;

    /// @notice Stops or resumes committing; administrator or guardian. Withdrawing cannot be stopped by anyone.
    function pauseCommits(bool paused) external;
}
