// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

/// @title The interface of a token that withdrawals can mint.
/// @notice The interface of StarkEx and Immutable X tokens, so existing contracts work unchanged.
/// ERC-165 id 0x19ee6e3f.
interface IMintable {
    /// @notice Mints `quantity` base units of the token that `mintingBlob` names to `to`.
    /// @param to The new owner.
    /// @param quantity Base units; 1 for ERC-721.
    /// @param mintingBlob The identifier text's bytes; empty for ERC-20.
    function mintFor(address to, uint256 quantity, bytes calldata mintingBlob) external;
}
