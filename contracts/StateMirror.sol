// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {ICommittee} from "./interfaces/ICommittee.sol";
import {
    Growth,
    IStateMirror,
    MirrorBatch,
    MirrorStep,
    StateRoots
} from "./interfaces/IStateMirror.sol";
import {ICommits} from "./interfaces/ICommits.sol";
import {MAX_BATCH_VAULTS, Mode, checkedDelay} from "./interfaces/Model.sol";
import {Attestation} from "./libraries/Attestation.sol";
import {Messages} from "./libraries/Messages.sol";
import {StateProof} from "./libraries/StateProof.sol";
import {AssetRegistry, IMintingTerms} from "./state/AssetRegistry.sol";
import {Committee} from "./state/Committee.sol";
import {Cancellations} from "./state/OwnerSignatures.sol";
import {PublishedDomain} from "./state/TypedData.sol";
import {VaultRecords} from "./state/VaultRecords.sol";
import {Withdrawals} from "./state/Withdrawals.sol";

/// @title Withdrawals of tokens that live on this chain, while another chain holds the state.
///
/// @notice The way of a vault from the source to its owner here:
///
///   1. The source commits a batch. A committee waits until that is final, and signs the source's
///      new state for this mirror.
///   2. Anybody brings the signatures ({advance}). The new state must begin with the accepted one,
///      and grow in one mode: a step.
///   3. Anybody shows that a batch is in the step ({importBatch}). This contract keeps the batch's
///      header, with the time and the number of the step.
///   4. The owner withdraws as on the source ({Withdrawals}). Maturity counts from the step, so
///      that a watcher of this chain has all of it to void a duplicate
///      ({VaultRecords-voidDuplicate}).
///
/// No proxy, no upgrade, no operator, and nobody can pause it. Its administrator can only name
/// another committee, after the delay.
contract StateMirror is
    IStateMirror,
    Committee,
    AssetRegistry,
    VaultRecords,
    Cancellations,
    PublishedDomain,
    Withdrawals
{
    struct Config {
        /// @dev Schedules committees. A time lock or multisig.
        address admin;
        uint64 sourceChainId;
        /// @dev The settlement contract on that chain.
        address sourceContract;
        /// @dev Strictly ascending.
        address[] committee;
        uint8 threshold;
        /// @dev Seconds that a new committee is announced before it is in force.
        uint64 changeDelay;
        /// @dev Seconds that an ERC-721 vault waits after this chain has learned of its batch; see
        /// {voidDuplicate}.
        uint64 maturity;
    }

    /// @inheritdoc IStateMirror
    uint64 public immutable sourceChainId;
    /// @inheritdoc IStateMirror
    address public immutable sourceContract;
    /// @inheritdoc IStateMirror
    uint64 public immutable changeDelay;
    /// @inheritdoc IStateMirror
    bytes32 public commitment;
    /// @inheritdoc IStateMirror
    uint64 public stepCount;
    uint64 private _epoch;
    mapping(uint64 sequence => MirrorStep) private _steps;

    constructor(Config memory config) Withdrawals(config.maturity) {
        changeDelay = checkedDelay(config.changeDelay);
        _grantRole(DEFAULT_ADMIN_ROLE, config.admin);
        if (config.sourceChainId == block.chainid) revert SourceOnThisChain();
        sourceChainId = config.sourceChainId;
        sourceContract = config.sourceContract;
        _setCommittee(config.committee, config.threshold, 0);
        bytes32 empty = StateProof.emptyRoot(StateProof.STATE_HEIGHT);
        commitment = StateProof.stateCommitment(
            config.sourceChainId,
            config.sourceContract,
            empty,
            empty,
            0,
            0
        );
    }

    /// @inheritdoc IStateMirror
    function advance(
        StateRoots calldata from,
        Growth calldata growth,
        bytes calldata attestation
    ) external returns (uint64 sequence) {
        bytes32 given = _commitmentOf(from);
        if (given != commitment) revert CommitmentMismatch(commitment, given);
        bool isRollup = growth.mode == Mode.ZkRollup;
        StateRoots memory to = from;
        (bytes32 root, uint64 first) = isRollup
            ? (from.rootRollup, from.countRollup)
            : (from.rootValidium, from.countValidium);
        if (isRollup) (to.rootRollup, to.countRollup) = (growth.root, growth.count);
        else (to.rootValidium, to.countValidium) = (growth.root, growth.count);
        if (growth.count <= first) revert StateNotNewer(first, growth.count);
        bytes32 reached = _commitmentOf(to);
        _checkSigned(to, reached, attestation);
        if (
            !StateProof.verifyConsistency(
                root,
                first,
                growth.root,
                growth.count,
                growth.leaf,
                growth.atOld,
                growth.atNew
            )
        ) {
            revert StateNotConsistent();
        }
        sequence = stepCount++;
        commitment = reached;
        uint64 acceptedAt = uint64(block.timestamp);
        _steps[sequence] = MirrorStep(growth.root, growth.mode, first, growth.count, acceptedAt);
        emit StateAdvanced(
            sequence,
            growth.mode,
            first,
            growth.count,
            growth.root,
            reached,
            acceptedAt
        );
    }

    /// @inheritdoc IStateMirror
    function importBatch(
        uint64 sequence,
        uint64 batchNumber,
        MirrorBatch calldata batch,
        bytes32[] calldata siblings
    ) external {
        if (sequence >= stepCount) revert StepUnknown(sequence);
        MirrorStep memory origin = _steps[sequence];
        if (batchNumber < origin.first || batchNumber >= origin.count)
            revert BatchNotInStep(origin.first, origin.count, batchNumber);
        // The source refuses such a count. But only the committee says what the source holds, so
        // this contract checks it again.
        if (batch.vaultCount == 0 || batch.vaultCount > MAX_BATCH_VAULTS) {
            revert ICommits.VaultCountInvalid(batch.vaultCount);
        }
        bytes32 leaf = StateProof.stateLeaf(
            batchNumber,
            batch.vaultCount,
            batch.dataHash,
            batch.batchRoot
        );
        if (
            siblings.length != StateProof.STATE_HEIGHT ||
            StateProof.fold(leaf, batchNumber, siblings) != origin.root
        ) {
            revert BatchProofInvalid(batchNumber);
        }
        _headers[origin.mode][batchNumber] = StateProof.headerHash(
            batch.batchRoot,
            batch.vaultCount,
            origin.acceptedAt,
            sequence
        );
        emit BatchImported(
            origin.mode,
            batchNumber,
            batch.batchRoot,
            batch.vaultCount,
            batch.dataHash,
            origin.acceptedAt,
            sequence
        );
    }

    /// @inheritdoc IStateMirror
    function step(uint64 sequence) external view returns (MirrorStep memory) {
        return _steps[sequence];
    }

    /// @inheritdoc ICommittee
    function committee() external view returns (bytes32 committeeHash, uint64 epoch) {
        return (_committeeHash, _epoch);
    }

    function _changeDelay() internal view override returns (uint64) {
        return changeDelay;
    }

    function _nextSequence() internal view override returns (uint64) {
        return stepCount;
    }

    /// @dev Only the source orders transfers, and only those of its own chain's tokens. Only it
    /// makes vaults.
    function _flagsOf(address token) internal view override returns (uint8) {
        if (_says(token, abi.encodeCall(IMintingTerms.madeOnly, ()))) revert TokenMadeOnly(token);
        return 0;
    }

    /// @dev The source checks consents at each commit. So the registry of a mirror keeps no
    /// issuers.
    // solhint-disable-next-line no-empty-blocks
    function _onRegistered(uint64, uint256, bool) internal override {}

    function _nextEpoch() internal override returns (uint64) {
        return ++_epoch;
    }

    function _commitmentOf(StateRoots memory state) private view returns (bytes32) {
        return
            StateProof.stateCommitment(
                sourceChainId,
                sourceContract,
                state.rootValidium,
                state.rootRollup,
                state.countValidium,
                state.countRollup
            );
    }

    /// @dev The domain names this chain and this contract. The message names the source's.
    function _checkSigned(
        StateRoots memory state,
        bytes32 reached,
        bytes calldata attestation
    ) private view {
        uint64 epoch = _epoch;
        bytes32 message = Messages.mirroredState(
            sourceChainId,
            sourceContract,
            state.countValidium,
            state.countRollup,
            reached,
            epoch
        );
        Attestation.check(attestation, _committeeHash, epoch, _digestOf(message));
    }
}
