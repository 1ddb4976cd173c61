// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

/// @title Cancelling what an owner has signed.
interface ICancellations {
    event AuthorizationCancelled(address indexed signer, bytes32 indexed digest);

    /// @notice Cancels the caller's `Withdrawal` message of these values for ever, whether it was signed or not.
    function cancelAuthorization(uint64 vaultId, uint64 withdrawnBefore, uint64 quantity, address recipient, uint64 deadline) external;

    /// @notice Cancels the caller's `WithdrawalList` message of these values for ever, whether it was signed or not.
    /// @param vaults 24 bytes for each: vaultId:u64 withdrawnBefore:u64 quantity:u64.
    function cancelList(bytes calldata vaults, address recipient, uint64 deadline) external;
}
