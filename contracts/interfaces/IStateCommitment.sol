// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

/// @dev Which data-availability mode a batch belongs to; the value is the top bit of its vault ids.
enum Mode { Validium, ZkRollup }

enum Standard { None, ERC20, ERC721, ERC1155 }

/// @dev A vault's whole content: the preimage of its leaf.
struct Vault {
    uint64 vaultId;
    uint64 chainId;
    address owner;
    uint256 assetType;
    uint64 amount;
    bytes blob;
}

/// @dev What L1 remembers of a committed batch, as one hash.
struct BatchHeader {
    bytes32 batchRoot;
    uint32 vaultCount;
    uint64 committedAt;
    uint64 sequence;
}

/// @dev Empty signature: the caller must be the owner. Otherwise the owner's EIP-712 `Withdrawal` message.
struct Authorization {
    uint64 deadline;
    bytes signature;
}

struct WithdrawalRequest {
    Vault vault;
    BatchHeader header;
    bytes32[] siblings;
    uint64 quantity;
    address recipient;
    Authorization authorization;
}

/// @title The L1 side of Mintmark: append-only state, and withdrawals that need nobody's help.
interface IStateCommitment {
    event AssetRegistered(uint256 indexed assetType, uint64 indexed chainId, address indexed token, Standard standard, uint256 quantum);
    event BatchCommitted(
        Mode indexed mode, uint64 indexed batchNumber, bytes32 batchRoot, uint32 vaultCount, bytes32 dataHash, uint64 committedAt, uint64 sequence
    );
    event Withdrawn(uint64 indexed vaultId, address indexed recipient, uint64 quantity, uint64 withdrawnTotal);
    event WithdrawalFailed(uint64 indexed vaultId, bytes reason);
    event AuthorizationCancelled(address indexed signer, bytes32 indexed digest);
    event DuplicateVoided(uint64 indexed earlierVaultId, uint64 indexed laterVaultId);
    event CommitteeScheduled(uint64 activeFrom, uint8 threshold, address[] members);
    event CommitteeChanged(uint64 indexed epoch, uint8 threshold, address[] members);
    event OperatorScheduled(address indexed operator, uint64 activeFrom);

    function registerAsset(Standard standard, uint64 chainId, address token, uint256 quantum) external returns (uint256 assetType);
    function asset(uint64 chainId, uint256 assetType) external view returns (Standard standard, address token, uint256 quantum);

    function commitRollupBatch(uint64 batchNumber, bytes calldata data) external;
    function commitValidiumBatch(uint64 batchNumber, bytes32 batchRoot, uint32 vaultCount, bytes32 dataHash, bytes calldata attestation) external;

    function withdraw(
        Vault calldata vault, BatchHeader calldata header, bytes32[] calldata siblings, uint64 quantity, address recipient, Authorization calldata authorization
    ) external;
    function withdrawBatch(WithdrawalRequest[] calldata requests) external returns (bool[] memory succeeded);
    function cancelAuthorization(bytes32 digest) external;
    function voidDuplicate(
        Vault calldata earlier, BatchHeader calldata earlierHeader, bytes32[] calldata earlierSiblings,
        Vault calldata later, BatchHeader calldata laterHeader, bytes32[] calldata laterSiblings
    ) external;

    function verifyVault(Vault calldata vault, BatchHeader calldata header, bytes32[] calldata siblings) external view returns (uint64 withdrawnAmount);
    function withdrawn(uint64 vaultId, Standard standard) external view returns (uint64);
    function batchHeaderHash(Mode mode, uint64 batchNumber) external view returns (bytes32);
    function batchCounts() external view returns (uint64 validium, uint64 rollup);
    function stateRoot(Mode mode) external view returns (bytes32);
    function stateCommitment() external view returns (bytes32);
    function committee() external view returns (bytes32 committeeHash, uint64 epoch);
    function engineVersion() external pure returns (uint256);
    function maturity() external view returns (uint64);
}
