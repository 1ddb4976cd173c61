// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {IAssetRegistry} from "./IAssetRegistry.sol";
import {ICommittee} from "./ICommittee.sol";
import {IVaultProofs} from "./IVaultProofs.sol";
import {ICancellations, IWithdrawals} from "./IWithdrawals.sol";
import {Mode} from "./Model.sol";

/// @dev Roots and counts of both state trees of the source.
struct StateRoots {
    bytes32 rootValidium;
    bytes32 rootRollup;
    uint64 countValidium;
    uint64 countRollup;
}

/// @dev The growth of one mode's tree, with the consistency proof of docs/protocol.md 7.
struct Growth {
    Mode mode;
    /// @dev Batches of the mode after the step.
    uint64 count;
    /// @dev Root of the mode's tree after the step.
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
    /// @dev Root of the mode's tree after the step.
    bytes32 root;
    Mode mode;
    /// @dev Number of the step's first batch.
    uint64 first;
    /// @dev Batches of the mode after the step.
    uint64 count;
    /// @dev Seconds since 1970, of this chain.
    uint64 acceptedAt;
}

/// @dev The parts of a batch's leaf in the state tree, without its number.
struct MirrorBatch {
    uint32 vaultCount;
    bytes32 dataHash;
    bytes32 batchRoot;
}

/// @title Withdrawals on another chain than the state's, for the tokens that live there.
/// @notice A mirror has no state of its own. A committee vouches for the state commitment of one
/// settlement contract on one other chain. Proofs lead from it to batches, and from batches to
/// vaults. The accepted state can only grow.
interface IStateMirror is ICommittee, IAssetRegistry, IVaultProofs, ICancellations, IWithdrawals {
    /// @param sequence Number of the step. {IVaultProofs-voidDuplicate} orders vaults by it.
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
    /// @notice A batch has become known here: its vaults of this chain can be withdrawn with this
    /// header.
    event BatchImported(
        Mode indexed mode,
        uint64 indexed batchNumber,
        bytes32 batchRoot,
        uint32 vaultCount,
        bytes32 dataHash,
        uint64 committedAt,
        uint64 sequence
    );

    /// @notice The source is on this chain, so its own withdrawals would pay the same vaults a
    /// second time.
    error SourceOnThisChain();
    /// @notice The given state is not the present one: its commitment is not the newest accepted
    /// one.
    error CommitmentMismatch(bytes32 expected, bytes32 given);
    /// @notice The state is not newer than the accepted one, as in a replay.
    error StateNotNewer(uint64 count, uint64 given);
    /// @notice The new state does not begin with the accepted one.
    error StateNotConsistent();
    /// @notice No step has this sequence number.
    error StepUnknown(uint64 sequence);
    /// @notice The batch is not of this step, whose batches are `first` to `count - 1`.
    error BatchNotInStep(uint64 first, uint64 count, uint64 given);
    /// @notice The batch is not a leaf of the step's tree at its number.
    error BatchProofInvalid(uint64 batchNumber);

    /// @notice Seconds between the announcement of a committee and the change.
    function changeDelay() external view returns (uint64);
    function sourceChainId() external view returns (uint64);
    function sourceContract() external view returns (address);
    /// @notice Newest accepted state commitment of the source; before the first step that of the
    /// empty state.
    function commitment() external view returns (bytes32);
    /// @notice Steps accepted so far; the next one gets this sequence number.
    function stepCount() external view returns (uint64);
    /// @notice A step; all zero when there is none of this sequence number.
    function step(uint64 sequence) external view returns (MirrorStep memory);

    /// @notice Accepts a later state of the source. Anyone may call this with k of n signatures of
    /// the committee.
    /// @dev A step holds batches of one mode only. So steps keep the source's order of commits, and
    /// the earlier of two vaults of one token is the same on both chains.
    /// @param from The present state. The contract keeps only its commitment.
    /// @param attestation Signatures over `MirroredState`; docs/protocol.md 8.
    function advance(
        StateRoots calldata from,
        Growth calldata growth,
        bytes calldata attestation
    ) external returns (uint64 sequence);

    /// @notice Stores a batch's header, with a proof against its step. Anyone may call this, any
    /// number of times.
    /// @dev The header has the step's `committedAt` and `sequence`. So maturity counts from the
    /// time at which this chain learned of the batch.
    /// @param siblings The batch's 32 siblings in the step's tree.
    function importBatch(
        uint64 sequence,
        uint64 batchNumber,
        MirrorBatch calldata batch,
        bytes32[] calldata siblings
    ) external;
}
