// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

/// @title Issuers: the accounts that must consent to the mints of a token; docs/protocol.md 5.
/// @dev Only tokens of the registry's own chain have issuers. A token's owner or admin speaks for
/// it, as in {IAssetRegistry-registerAsset}. Consents are checked at commit, so a withdrawal never
/// depends on an issuer.
interface IIssuers {
    /// @notice From now on a batch pays vaults of the token only with this issuer's consent. With
    /// the zero address it needs no consent.
    /// @param epoch Rises with each change. A consent of an earlier epoch does not count.
    event IssuerChanged(address indexed token, address indexed issuer, uint64 epoch);
    /// @notice From now on no batch pays vaults of the token, until another issuer is in force.
    event IssuerSuspended(address indexed token, address indexed issuer, uint64 epoch);
    /// @notice Another issuer is announced. The announcement is withdrawn when `activeFrom` is 0.
    event IssuerScheduled(address indexed token, address indexed issuer, uint64 activeFrom);

    /// @notice The token is not registered here, or has no issuer to suspend.
    error IssuerUnknown(address token);
    /// @notice The announced issuer could have come into force from then on, for 30 days. Announce
    /// it anew.
    error ChangeExpired(uint64 activeFrom);

    /// @notice Names an issuer. It takes effect at once if the token has none, and otherwise after
    /// the delay. The zero address removes the issuer. Only for the token's owner or admin.
    function scheduleIssuer(address token, address issuer) external;

    /// @notice Makes the announced issuer the present one, once the delay has passed and for 30
    /// days. Only for the token's owner or admin: a stranger could make the consents of a pending
    /// commit stale.
    function activateIssuer(address token) external;

    /// @notice Withdraws the announcement. Only for the token's owner or admin.
    function cancelIssuer(address token) external;

    /// @notice Suspends the issuer at once: no consent counts until another issuer is in force.
    /// Only for the token's owner or admin.
    function suspendIssuer(address token) external;

    /// @notice The issuer that must consent to vaults of an asset; the zero address when none must.
    /// @return issuer A key's account or a wallet contract.
    /// @return epoch The number of changes so far, which the issuer signs; 0 for a token that never
    /// had an issuer.
    /// @return suspended Whether no consent counts.
    function issuerOf(
        uint64 chainId,
        uint256 assetType
    ) external view returns (address issuer, uint64 epoch, bool suspended);
}
