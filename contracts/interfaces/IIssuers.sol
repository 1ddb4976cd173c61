// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

/// @title Whose consent the mints of a token need; docs/protocol.md 5.
/// @dev Only tokens of the registry's own chain have issuers. A token's owner or admin, as {IAssetRegistry-registerAsset} knows them, speaks
/// for it. An exit never depends on an issuer: consents are checked at commit.
interface IIssuers {
    /// @notice From now on a batch pays vaults of the token only with this issuer's consent; of anybody's if it is the zero address.
    /// @param epoch Rises with each change, so that a consent of an earlier one counts for nothing.
    event IssuerChanged(address indexed token, address indexed issuer, uint64 epoch);
    /// @notice From now on no batch pays vaults of the token, until another issuer is in force.
    event IssuerSuspended(address indexed token, address indexed issuer, uint64 epoch);
    /// @notice Another issuer is announced; called off when `activeFrom` is 0.
    event IssuerScheduled(address indexed token, address indexed issuer, uint64 activeFrom);

    /// @notice The token is not registered here, or has no issuer to suspend.
    error IssuerUnknown(address token);

    /// @notice Names the issuer of a token that has none, at once; otherwise announces another one, or none, for after the delay.
    /// For whoever speaks for the token.
    function scheduleIssuer(address token, address issuer) external;

    /// @notice Puts the announced issuer in force, once it is due; anyone.
    function activateIssuer(address token) external;

    /// @notice Calls the announced issuer off. For whoever speaks for the token.
    function cancelIssuer(address token) external;

    /// @notice Lets no consent of the present issuer count any more, at once. For whoever speaks for the token.
    function suspendIssuer(address token) external;

    /// @notice Who must consent to vaults of an asset; the zero address when nobody must.
    /// @return issuer A key's account or a wallet contract.
    /// @return epoch What the issuer signs, and how often it was changed; 0 for a token that never had an issuer.
    /// @return suspended Whether no consent counts.
    function issuerOf(uint64 chainId, uint256 assetType) external view returns (address issuer, uint64 epoch, bool suspended);
}
