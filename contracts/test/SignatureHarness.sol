// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {StateCommitment} from "../StateCommitment.sol";

/// @title The settlement contract with what it checks of signatures open to view, and a committee that a test sets.
contract SignatureHarness is StateCommitment {
    constructor(Config memory config) StateCommitment(config) {}

    function setCommitteeHash(bytes32 committeeHash) external {
        _committeeHash = committeeHash;
    }

    function withdrawalDigest(uint64 vaultId, uint64 before, uint64 quantity, address recipient, uint64 deadline)
        external
        view
        returns (bytes32)
    {
        return _withdrawalDigest(vaultId, before, quantity, recipient, deadline);
    }

    function validiumBatchDigest(uint64 batchNumber, bytes32 batchRoot, uint32 vaultCount, bytes32 dataHash, uint64 epoch)
        external
        view
        returns (bytes32)
    {
        return _validiumBatchDigest(batchNumber, batchRoot, vaultCount, dataHash, epoch);
    }

    function checkAttestation(
        uint64 batchNumber, bytes32 batchRoot, uint32 vaultCount, bytes32 dataHash, uint64 epoch, bytes calldata attestation
    ) external view {
        _checkAttestation(batchNumber, batchRoot, vaultCount, dataHash, epoch, attestation);
    }
}
