// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

/// @title The EIP-712 struct hashes of the messages of members, issuers and owners.
library Messages {
    bytes32 private constant VALIDIUM_BATCH_TYPEHASH = keccak256(
        "ValidiumBatch(bytes32 history,uint64 batchNumber,bytes32 batchRoot,uint32 vaultCount,bytes32 dataHash,uint64 epoch)"
    );
    bytes32 private constant TRANSFER_BATCH_TYPEHASH = keccak256(
        "TransferBatch(bytes32 history,uint64 batchNumber,bytes32 batchRoot,uint32 vaultCount,bytes32 dataHash,uint64 epoch)"
    );
    bytes32 private constant TRANSFERS_TYPEHASH = keccak256(
        "Transfers(Transfer[] transfers,uint64 deadline)Transfer(uint64 vaultId,uint64 amount,address to)"
    );
    bytes32 private constant SESSION_TYPEHASH = keccak256(
        "Session(address owner,address key,uint64 until,uint64 limit,uint256 assetType)"
    );
    bytes32 private constant SESSION_END_TYPEHASH = keccak256(
        "SessionEnd(address owner,address key)"
    );
    bytes32 private constant MIRRORED_STATE_TYPEHASH = keccak256(
        "MirroredState(uint64 sourceChainId,address sourceContract,uint64 countValidium,uint64 countRollup,bytes32 commitment,uint64 epoch)"
    );
    bytes32 private constant ISSUER_CONSENT_TYPEHASH = keccak256(
        "IssuerConsent(uint8 mode,uint64 batchNumber,uint32 vaultCount,bytes32 content,bytes32 manifest,bytes32 assetsHash)"
    );
    bytes32 private constant LISTED_VAULT_TYPEHASH = keccak256(
        "ListedVault(uint64 vaultId,uint64 withdrawnBefore,uint64 quantity)"
    );
    bytes32 private constant WITHDRAWAL_LIST_TYPEHASH = keccak256(
        "WithdrawalList(ListedVault[] vaults,address recipient,uint64 deadline)ListedVault(uint64 vaultId,uint64 withdrawnBefore,uint64 quantity)"
    );
    bytes32 private constant RENEWAL_LIST_TYPEHASH = keccak256(
        "RenewalList(ListedVault[] vaults,address recipient,uint64 deadline)ListedVault(uint64 vaultId,uint64 withdrawnBefore,uint64 quantity)"
    );
    bytes32 private constant CANCELLATION_TYPEHASH = keccak256(
        "Cancellation(address signer,bytes32 id)"
    );
    uint256 private constant LISTED_VAULT_BYTES = 24;

    /// @notice A member states that it has stored the batch's data and derived the root from it.
    /// The message is valid after one history only.
    function validiumBatch(
        bytes32 history,
        uint256 batchNumber,
        bytes32 batchRoot,
        uint256 vaultCount,
        bytes32 dataHash,
        uint256 epoch
    ) internal pure returns (bytes32) {
        return
            _batch(
                VALIDIUM_BATCH_TYPEHASH,
                history,
                batchNumber,
                batchRoot,
                vaultCount,
                dataHash,
                epoch
            );
    }

    /// @notice A member states that it has checked every record of the batch. The message is valid
    /// after one history only.
    function transferBatch(
        bytes32 history,
        uint256 batchNumber,
        bytes32 batchRoot,
        uint256 vaultCount,
        bytes32 dataHash,
        uint256 epoch
    ) internal pure returns (bytes32) {
        return
            _batch(
                TRANSFER_BATCH_TYPEHASH,
                history,
                batchNumber,
                batchRoot,
                vaultCount,
                dataHash,
                epoch
            );
    }

    /// @notice An owner gives vaults away.
    /// @param list The hash of the message's array.
    function transfers(bytes32 list, uint64 deadline) internal pure returns (bytes32) {
        return keccak256(abi.encode(TRANSFERS_TYPEHASH, list, deadline));
    }

    /// @notice An owner lets a key transfer.
    function session(
        address owner,
        address key,
        uint64 until,
        uint64 limit,
        uint256 assetType
    ) internal pure returns (bytes32) {
        return keccak256(abi.encode(SESSION_TYPEHASH, owner, key, until, limit, assetType));
    }

    /// @notice An owner ends the session of a key, or makes sure that there never is one.
    function sessionEnd(address owner, address key) internal pure returns (bytes32) {
        return keccak256(abi.encode(SESSION_END_TYPEHASH, owner, key));
    }

    /// @notice An account takes back what it has signed, or may sign, of a list or of a vault.
    function cancellation(address signer, bytes32 id) internal pure returns (bytes32) {
        return keccak256(abi.encode(CANCELLATION_TYPEHASH, signer, id));
    }

    /// @notice A member states that this state is final on the source. The domain is the mirror's.
    function mirroredState(
        uint64 sourceChainId,
        address sourceContract,
        uint64 countValidium,
        uint64 countRollup,
        bytes32 commitment,
        uint64 epoch
    ) internal pure returns (bytes32) {
        return
            keccak256(
                abi.encode(
                    MIRRORED_STATE_TYPEHASH,
                    sourceChainId,
                    sourceContract,
                    countValidium,
                    countRollup,
                    commitment,
                    epoch
                )
            );
    }

    /// @notice An issuer consents to every vault of its assets in the batch.
    /// @param manifest Hash of all assets of the batch. A vault's words name only a place in them.
    /// @param assetsHash Hash of the issuer's own assets, with their epochs.
    function issuerConsent(
        uint256 mode,
        uint256 batchNumber,
        uint256 vaultCount,
        bytes32 content,
        bytes32 manifest,
        bytes32 assetsHash
    ) internal pure returns (bytes32 hash) {
        bytes32 typeHash = ISSUER_CONSENT_TYPEHASH;
        assembly ("memory-safe") {
            let free := mload(0x40)
            mstore(free, typeHash)
            mstore(add(free, 0x20), mode)
            mstore(add(free, 0x40), batchNumber)
            mstore(add(free, 0x60), vaultCount)
            mstore(add(free, 0x80), content)
            mstore(add(free, 0xa0), manifest)
            mstore(add(free, 0xc0), assetsHash)
            hash := keccak256(free, 0xe0)
        }
    }

    /// @notice An owner authorizes withdrawals. Each entry can be used once, because
    /// `withdrawnBefore` only rises.
    /// @param vaults Whole entries of 24 bytes.
    function withdrawalList(
        bytes calldata vaults,
        address recipient,
        uint64 deadline
    ) internal pure returns (bytes32) {
        return _list(WITHDRAWAL_LIST_TYPEHASH, vaults, recipient, deadline);
    }

    /// @notice An owner renews vaults, all of the list in one call.
    /// @param vaults Whole entries of 24 bytes.
    function renewalList(
        bytes calldata vaults,
        address recipient,
        uint64 deadline
    ) internal pure returns (bytes32) {
        return _list(RENEWAL_LIST_TYPEHASH, vaults, recipient, deadline);
    }

    function _list(
        bytes32 listTypeHash,
        bytes calldata vaults,
        address recipient,
        uint64 deadline
    ) private pure returns (bytes32 hash) {
        bytes32 typeHash = LISTED_VAULT_TYPEHASH;
        uint256 to = uint160(recipient);
        uint256 until = deadline;
        assembly ("memory-safe") {
            // Memory: the four words of the present entry, then the hashes of the entries so far.
            let entry := mload(0x40)
            let hashes := add(entry, 0x80)
            let next := hashes
            mstore(entry, typeHash)
            let end := add(vaults.offset, vaults.length)
            for {
                let from := vaults.offset
            } lt(from, end) {
                from := add(from, LISTED_VAULT_BYTES)
            } {
                let packed := calldataload(from)
                mstore(add(entry, 0x20), shr(192, packed))
                mstore(add(entry, 0x40), and(shr(128, packed), 0xffffffffffffffff))
                mstore(add(entry, 0x60), and(shr(64, packed), 0xffffffffffffffff))
                mstore(next, keccak256(entry, 0x80))
                next := add(next, 0x20)
            }
            // The message takes the place of the entry.
            mstore(add(entry, 0x20), keccak256(hashes, sub(next, hashes)))
            mstore(entry, listTypeHash)
            mstore(add(entry, 0x40), to)
            mstore(add(entry, 0x60), until)
            hash := keccak256(entry, 0x80)
        }
    }

    function _batch(
        bytes32 typeHash,
        bytes32 history,
        uint256 batchNumber,
        bytes32 batchRoot,
        uint256 vaultCount,
        bytes32 dataHash,
        uint256 epoch
    ) private pure returns (bytes32 hash) {
        assembly ("memory-safe") {
            let free := mload(0x40)
            mstore(free, typeHash)
            mstore(add(free, 0x20), history)
            mstore(add(free, 0x40), batchNumber)
            mstore(add(free, 0x60), batchRoot)
            mstore(add(free, 0x80), vaultCount)
            mstore(add(free, 0xa0), dataHash)
            mstore(add(free, 0xc0), epoch)
            hash := keccak256(free, 0xe0)
        }
    }
}
