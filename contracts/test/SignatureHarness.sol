// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {EIP712} from "@openzeppelin/contracts/utils/cryptography/EIP712.sol";
import {Attestation} from "../libraries/Attestation.sol";
import {Messages} from "../libraries/Messages.sol";
import {Orders} from "../libraries/Orders.sol";
import {Signatures} from "../libraries/Signatures.sol";

/// @dev An amount of a token.
struct Item {
    address token;
    uint256 id;
    uint256 amount;
}

/// @title The digests of all messages, the recovery of signers and the check of attestations, to be
/// called from outside.
contract SignatureHarness is EIP712("Mintmark", "1") {
    function cancellationDigest(address signer, bytes32 id) external view returns (bytes32) {
        return _hashTypedDataV4(Messages.cancellation(signer, id));
    }

    /// @param vaults 24 bytes for each.
    function withdrawalListDigest(
        bytes calldata vaults,
        address recipient,
        uint64 deadline
    ) external view returns (bytes32) {
        return _hashTypedDataV4(Messages.withdrawalList(vaults, recipient, deadline));
    }

    /// @param shares 28 bytes for each.
    function orderDigest(
        Item calldata give,
        Item calldata want,
        bytes calldata shares,
        uint256 quantum,
        address taker,
        uint64 vaultId,
        uint64 withdrawnBefore,
        uint64 deadline
    ) external view returns (bytes32) {
        return
            _hashTypedDataV4(
                Orders.order(
                    Orders.item(give.token, give.id, give.amount),
                    Orders.item(want.token, want.id, want.amount),
                    Orders.shares(shares, quantum),
                    taker,
                    vaultId,
                    withdrawnBefore,
                    deadline
                )
            );
    }

    function validiumBatchDigest(
        bytes32 history,
        uint64 batchNumber,
        bytes32 batchRoot,
        uint32 vaultCount,
        bytes32 dataHash,
        uint64 epoch
    ) external view returns (bytes32) {
        return
            _hashTypedDataV4(
                Messages.validiumBatch(history, batchNumber, batchRoot, vaultCount, dataHash, epoch)
            );
    }

    function issuerConsentDigest(
        uint8 mode,
        uint64 batchNumber,
        uint32 vaultCount,
        bytes32 content,
        bytes32 manifest,
        bytes32 assetsHash
    ) external view returns (bytes32) {
        return
            _hashTypedDataV4(
                Messages.issuerConsent(mode, batchNumber, vaultCount, content, manifest, assetsHash)
            );
    }

    function mirroredStateDigest(
        uint64 sourceChainId,
        address sourceContract,
        uint64 countValidium,
        uint64 countRollup,
        bytes32 commitment,
        uint64 epoch
    ) external view returns (bytes32) {
        return
            _hashTypedDataV4(
                Messages.mirroredState(
                    sourceChainId,
                    sourceContract,
                    countValidium,
                    countRollup,
                    commitment,
                    epoch
                )
            );
    }

    function signerOf(bytes32 digest, bytes calldata signature) external view returns (address) {
        return Signatures.signerOf(digest, signature);
    }

    function hashCommittee(
        uint64 epoch,
        bytes calldata thresholdAndMembers
    ) external pure returns (bytes32) {
        return Attestation.hashCommittee(epoch, thresholdAndMembers);
    }

    function checkAttestation(
        bytes calldata attestation,
        bytes32 committeeHash,
        uint64 epoch,
        bytes32 digest
    ) external view {
        Attestation.check(attestation, committeeHash, epoch, digest);
    }
}
