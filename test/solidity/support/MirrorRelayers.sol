// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {ICommittee} from "../../../contracts/interfaces/ICommittee.sol";
import {ICommits} from "../../../contracts/interfaces/ICommits.sol";
import {Growth, IStateMirror, MirrorBatch, MirrorStep, StateRoots} from "../../../contracts/interfaces/IStateMirror.sol";
import {expect} from "./Expect.sol";
import {Mirrored} from "./Mirrored.sol";
import {vm} from "./Vm.sol";

/// @dev Does at random what relayers and members may do at a mirror. Each action knows by a model whether it must succeed, and if not,
/// by which name it must be refused.
abstract contract MirrorRelayers is Mirrored {
    enum Flaw {
        OtherChainsDomain,
        OtherContractsDomain,
        OtherSourceChain,
        OtherSourceContract,
        OtherEpoch,
        OtherCommittee,
        TooFewSigners,
        Replay,
        NotNewer,
        RivalHistory
    }

    uint256 internal constant STRANGER_KEY = 401;

    address internal immutable stranger = vm.addr(STRANGER_KEY);

    uint256 public refusals;
    bytes private _lastAdvance;

    function advance(uint256 seed) external {
        if (accepted == batches.length) return;
        Growth memory growth = nextGrowth(seed);
        StateRoots memory reached = stateAfter(growth);
        bytes memory attestation = attest(typedDigest(mirroredHash(reached, SOURCE_CHAIN, SOURCE, epoch)), threshold);
        expect(mirror.advance(present, growth, attestation) == steps.length, "a step out of order");
        _lastAdvance = abi.encodeCall(mirror.advance, (present, growth, attestation));
        uint64 first = countOf(growth.mode);
        steps.push(MirrorStep(growth.root, growth.mode, first, growth.count, uint64(block.timestamp)));
        present = reached;
        for (; first < growth.count; ++first) batches[accepted++].step = uint64(steps.length - 1);
    }

    function advanceWrongly(uint256 seed, uint8 manner) external {
        Flaw flaw = Flaw(manner % 10);
        if (flaw == Flaw.Replay && steps.length != 0) mustRefuse(_lastAdvance, IStateMirror.CommitmentMismatch.selector);
        if (flaw == Flaw.Replay || accepted == batches.length) return;
        Growth memory growth = nextGrowth(seed);
        uint64 first = countOf(growth.mode);
        if (flaw == Flaw.NotNewer) growth.count = uint64(seed % (first + 1));
        if (flaw == Flaw.RivalHistory) growth = _rival(growth, first, seed);
        bytes memory attestation = _flawedAttestation(stateAfter(growth), flaw);
        bytes4 name = ICommittee.CommitteeMismatch.selector;
        if (flaw == Flaw.NotNewer) name = IStateMirror.StateNotNewer.selector;
        if (flaw == Flaw.RivalHistory) name = IStateMirror.StateNotConsistent.selector;
        mustRefuse(abi.encodeCall(mirror.advance, (present, growth, attestation)), name);
    }

    function importBatch(uint256 which) external {
        if (batches.length == 0) return;
        which %= batches.length;
        if (which < accepted) return importOne(which);
        // The source has it, this chain has not heard of it.
        SourceBatch memory batch = batches[which];
        uint64 last = steps.length == 0 ? 0 : uint64(steps.length - 1);
        bytes memory call = abi.encodeCall(mirror.importBatch, (last, batch.number, batch.content, new bytes32[](32)));
        mustRefuse(call, _refusalByStep(last, batch.number));
    }

    function importWrongly(uint256 which, uint8 manner, uint64 sequence) external {
        if (accepted == 0) return;
        SourceBatch memory batch = batches[which % accepted];
        bytes32[] memory path = pathIn(batch.step, batch);
        MirrorBatch memory content = batch.content;
        bytes4 name = IStateMirror.BatchProofInvalid.selector;
        uint64 step = batch.step;
        if (manner % 6 == 0) {
            step = sequence % uint64(steps.length + 1);
            if (step == batch.step) return;
            name = _refusalByStep(step, batch.number);
        }
        if (manner % 6 == 1) content.batchRoot ^= bytes32(uint256(1));
        if (manner % 6 == 2) content.dataHash ^= bytes32(uint256(1));
        if (manner % 6 == 3) ++content.vaultCount;
        if (manner % 6 == 4) path = new bytes32[](31);
        if (manner % 6 == 5) {
            content.vaultCount = sequence % 2 == 0 ? 0 : uint32(1 << 20) + 1;
            name = ICommits.VaultCountInvalid.selector;
        }
        mustRefuse(abi.encodeCall(mirror.importBatch, (step, batch.number, content, path)), name);
    }

    function importOne(uint256 index) internal {
        SourceBatch memory batch = batches[index];
        mirror.importBatch(batch.step, batch.number, batch.content, pathIn(batch.step, batch));
        batches[index].imported = true;
    }

    function mustRefuse(bytes memory call, bytes4 name) internal {
        mustRefuse(stranger, call, name);
    }

    function mustRefuse(address caller, bytes memory call, bytes4 name) internal {
        vm.prank(caller);
        (bool done, bytes memory reason) = address(mirror).call(call);
        expect(!done, "what must be refused was taken");
        expect(bytes4(reason) == name, "refused by another name");
        ++refusals;
    }

    /// @dev Why no batch of this number comes with a step that is not its own.
    function _refusalByStep(uint64 sequence, uint64 number) private view returns (bytes4) {
        if (sequence >= steps.length) return IStateMirror.StepUnknown.selector;
        MirrorStep storage step = steps[sequence];
        bool isWithin = number >= step.first && number < step.count;
        return isWithin ? IStateMirror.BatchProofInvalid.selector : IStateMirror.BatchNotInStep.selector;
    }

    /// @dev Another history of the mode: one of its accepted leaves differs, or what the proof says of the next one.
    function _rival(Growth memory growth, uint64 first, uint256 seed) private view returns (Growth memory) {
        bytes32[] memory leaves = leavesAt(growth.mode, growth.count);
        if (first != 0) leaves[seed % first] ^= bytes32(uint256(1));
        growth = growthTo(growth.mode, leaves);
        if (first == 0) growth.leaf ^= bytes32(uint256(1));
        return growth;
    }

    function _flawedAttestation(StateRoots memory state, Flaw flaw) private view returns (bytes memory attestation) {
        bytes32 message = mirroredHash(
            state,
            flaw == Flaw.OtherSourceChain ? SOURCE_CHAIN + 1 : SOURCE_CHAIN,
            flaw == Flaw.OtherSourceContract ? address(mirror) : SOURCE,
            flaw == Flaw.OtherEpoch ? (epoch == 0 ? 1 : epoch - 1) : epoch
        );
        bytes32 digest = typedDigest(message);
        if (flaw == Flaw.OtherChainsDomain) digest = typedDigest(message, SOURCE_CHAIN, address(mirror));
        if (flaw == Flaw.OtherContractsDomain) digest = typedDigest(message, block.chainid, SOURCE);
        attestation = attest(digest, flaw == Flaw.TooFewSigners ? threshold - 1 : threshold);
        // One bit of the last member's address, or of its signature.
        if (flaw == Flaw.OtherCommittee) attestation[attestation.length - 1] ^= 0x01;
    }
}
