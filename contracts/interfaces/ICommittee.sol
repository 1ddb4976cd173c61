// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

/// @title k of n plain accounts whose signatures count, and how they are replaced.
interface ICommittee {
    /// @param activeFrom Seconds since 1970; 0, without members, when the announcement is withdrawn.
    event CommitteeScheduled(uint64 activeFrom, uint8 threshold, address[] members);
    event CommitteeChanged(uint64 indexed epoch, uint8 threshold, address[] members);

    /// @notice Not announced (0), or announced for a later time.
    error ChangeNotDue(uint64 activeFrom);
    error CommitteeInvalid(uint256 members, uint8 threshold);
    /// @notice Member `index` is not above the one before.
    error CommitteeNotAscending(uint256 index);
    /// @notice Another committee than this one was announced.
    error CommitteeNotScheduled();
    /// @notice The attestation's length does not fit its threshold and member count.
    error AttestationMalformed(uint256 length);
    /// @notice Not the members and threshold of the committee of this epoch.
    error CommitteeMismatch(uint64 epoch);
    /// @notice The member index of signature `index` is not above the one before, or there is no such member.
    error SignersNotAscending(uint256 index);
    error SignatureNotMembers(address member);

    /// @notice Hash of members, threshold and epoch; docs/protocol.md 5.
    function committee() external view returns (bytes32 committeeHash, uint64 epoch);

    /// @notice Seconds between announcing a change of who may act and its being in force.
    function changeDelay() external view returns (uint64);
    /// @notice Announces a committee, in place of any announced before; administrator only.
    /// @param members Strictly ascending.
    function scheduleCommittee(address[] calldata members, uint8 threshold) external;
    /// @notice Puts the announced committee in office under the next epoch once the delay has passed. Anyone may.
    function activateCommittee(address[] calldata members, uint8 threshold) external;
    /// @notice Withdraws the announcement; administrator or guardian.
    function cancelCommittee() external;
}
