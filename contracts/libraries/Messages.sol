// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

/// @title What members and owners sign: the EIP-712 struct hashes of all messages.
library Messages {
    bytes32 private constant VALIDIUM_BATCH_TYPEHASH = keccak256(
        "ValidiumBatch(bytes32 history,uint64 batchNumber,bytes32 batchRoot,uint32 vaultCount,bytes32 dataHash,uint64 epoch)"
    );
    bytes32 private constant MIRRORED_STATE_TYPEHASH = keccak256(
        "MirroredState(uint64 sourceChainId,address sourceContract,uint64 countValidium,uint64 countRollup,bytes32 commitment,uint64 epoch)"
    );
    bytes32 private constant WITHDRAWAL_TYPEHASH = keccak256(
        "Withdrawal(uint64 vaultId,uint64 withdrawnBefore,uint64 quantity,address recipient,uint64 deadline)"
    );

    /// @notice A member's word that it has stored the batch's data and derived the root from it. It is good after one history only.
    function validiumBatch(
        bytes32 history, uint64 batchNumber, bytes32 batchRoot, uint32 vaultCount, bytes32 dataHash, uint64 epoch
    ) internal pure returns (bytes32) {
        return keccak256(
            abi.encode(VALIDIUM_BATCH_TYPEHASH, history, batchNumber, batchRoot, vaultCount, dataHash, epoch)
        );
    }

    /// @notice A member's word that the source, by its own finality, has had this state. The domain is the mirror's.
    function mirroredState(
        uint64 sourceChainId, address sourceContract, uint64 countValidium, uint64 countRollup, bytes32 commitment, uint64 epoch
    ) internal pure returns (bytes32) {
        return keccak256(
            abi.encode(
                MIRRORED_STATE_TYPEHASH, sourceChainId, sourceContract, countValidium, countRollup, commitment, epoch
            )
        );
    }

    /// @notice An owner's leave to withdraw, single-use because `withdrawnBefore` never comes again.
    function withdrawal(uint64 vaultId, uint64 withdrawnBefore, uint64 quantity, address recipient, uint64 deadline)
        internal
        pure
        returns (bytes32)
    {
        return keccak256(abi.encode(WITHDRAWAL_TYPEHASH, vaultId, withdrawnBefore, quantity, recipient, deadline));
    }
}
