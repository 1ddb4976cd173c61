// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {IAssetRegistry} from "./IAssetRegistry.sol";
import {ICommittee} from "./ICommittee.sol";
import {IWithdrawals} from "./IWithdrawals.sol";
import {Mode} from "./Model.sol";

/// @dev Roots and counts of both state trees of the source.
struct StateRoots {
    bytes32 rootValidium;
    bytes32 rootRollup;
    uint64 countValidium;
    uint64 countRollup;
}

/// @dev How one mode's tree grew; the proof of consistency of docs/protocol.md 7.
struct Growth {
    Mode mode;
    /// @dev Batches of the mode afterwards.
    uint64 count;
    /// @dev Root of the mode's tree afterwards.
    bytes32 root;
    /// @dev The new tree's leaf at the old count.
    bytes32 leaf;
    /// @dev The new tree's 32 siblings at the old count.
    bytes32[] atOld;
    /// @dev The new tree's 32 siblings at its own count.
    bytes32[] atNew;
}

/// @dev One accepted growth of the mirrored state.
struct MirrorStep {
    /// @dev Root of the mode's tree after it.
    bytes32 root;
    Mode mode;
    /// @dev Number of the first batch that came with it.
    uint64 first;
    /// @dev Batches of the mode after it.
    uint64 count;
    /// @dev Seconds since 1970, of this chain.
    uint64 acceptedAt;
}

/// @dev What a batch's leaf in the state tree is made of, its number aside.
struct MirrorBatch {
    uint32 vaultCount;
    bytes32 dataHash;
    bytes32 batchRoot;
}

/// @title The exit on another chain than the state's, for the tokens that live there.
/// @notice Holds no state of its own: a committee vouches for the state commitment of one settlement contract on one other chain, and proofs
/// lead from it to batches and on to vaults. What has been accepted can only grow.
interface IStateMirror is ICommittee, IAssetRegistry, IWithdrawals {
    /// @param sequence Place among the steps; what {IWithdrawals.voidDuplicate} orders by.
    /// @param commitment State commitment of the source after it.
    event StateAdvanced(
        uint64 indexed sequence,
        Mode indexed mode,
        uint64 first,
        uint64 count,
        bytes32 root,
        bytes32 commitment,
        uint64 acceptedAt
    );
    /// @notice A batch has become known here: its vaults of this chain can be withdrawn with this header.
    event BatchImported(
        Mode indexed mode,
        uint64 indexed batchNumber,
        bytes32 batchRoot,
        uint32 vaultCount,
        bytes32 dataHash,
        uint64 committedAt,
        uint64 sequence
    );

    /// @notice The source is on this very chain: its own withdrawals would pay what this contract pays.
    error SourceOnThisChain();
    /// @notice What was given as the present state is not: its commitment is not the newest that was accepted.
    error CommitmentMismatch(bytes32 expected, bytes32 given);
    /// @notice The state is not newer than the accepted one: a replay.
    error StateNotNewer(uint64 count, uint64 given);
    /// @notice The new state does not begin with all that has been accepted.
    error StateNotConsistent();
    /// @notice No step has this sequence number.
    error StepUnknown(uint64 sequence);
    /// @notice The batch did not come with this step: its number is not within `first` to `count - 1`.
    error BatchNotInStep(uint64 first, uint64 count, uint64 given);
    /// @notice The batch is not a leaf of the step's tree at its number.
    error BatchProofInvalid(uint64 batchNumber);

    function sourceChainId() external view returns (uint64);
    function sourceContract() external view returns (address);
    /// @notice Newest accepted state commitment of the source; that of the empty state at first.
    function commitment() external view returns (bytes32);
    /// @notice Steps accepted so far; the next one gets this sequence number.
    function stepCount() external view returns (uint64);
    /// @notice A step; all zero when there is none of this sequence number.
    function step(uint64 sequence) external view returns (MirrorStep memory);

    /// @notice Accepts a later state of the source. Anyone may, with k of n signatures of the committee.
    /// @dev A step takes on batches of one mode only. So steps are in the source's own order of commits, and the earlier of two vaults of one token is
    /// the same here as there.
    /// @param from The present state, whose commitment is kept here.
    /// @param attestation Signatures over `MirroredState`; docs/protocol.md 8.
    function advance(StateRoots calldata from, Growth calldata growth, bytes calldata attestation) external returns (uint64 sequence);

    /// @notice Makes a batch's header known, from its proof against the step that it came with. Anyone may, as often as they like.
    /// @dev The header's `committedAt` and `sequence` are those of the step: maturity counts from when this chain first learned of the batch.
    /// @param siblings 32, of the batch in the step's tree.
    function importBatch(uint64 sequence, uint64 batchNumber, MirrorBatch calldata batch, bytes32[] calldata siblings) external;
}
