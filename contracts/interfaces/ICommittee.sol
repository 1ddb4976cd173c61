// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

/// @title The committee: k of n plain accounts. Its signatures count, and it can be replaced after
/// a delay.
interface ICommittee {
    /// @param activeFrom Seconds since 1970; 0, without members, when the announcement is
    /// withdrawn.
    event CommitteeScheduled(uint64 activeFrom, uint8 threshold, address[] members);
    event CommitteeChanged(uint64 indexed epoch, uint8 threshold, address[] members);

    /// @notice The change is not announced (0), or announced for a later time.
    error ChangeNotDue(uint64 activeFrom);
    error CommitteeInvalid(uint256 members, uint8 threshold);
    /// @notice Members must ascend; member `index` does not.
    error CommitteeNotAscending(uint256 index);
    /// @notice The announced committee is another one.
    error CommitteeNotScheduled();
    /// @notice The attestation's length does not fit its members and signatures, or there are not
    /// as many signatures as its threshold.
    error AttestationMalformed(uint256 length);
    /// @notice The members and the threshold are not those of the committee of this epoch, or a
    /// signature is not its member's over this message.
    error CommitteeMismatch(uint64 epoch);

    /// @notice The hash of members, threshold and epoch (docs/protocol.md 5), and the epoch.
    function committee() external view returns (bytes32 committeeHash, uint64 epoch);

    /// @notice Announces a committee, in place of any announced before; administrator only.
    /// @param members Strictly ascending.
    function scheduleCommittee(address[] calldata members, uint8 threshold) external;
    /// @notice Makes the announced committee the present one, with the next epoch, once the delay
    /// has passed. Anyone may call this.
    function activateCommittee(address[] calldata members, uint8 threshold) external;
    /// @notice Withdraws the announcement; administrator or guardian.
    function cancelCommittee() external;
}
