// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

/// @dev Which data-availability mode a batch belongs to; the value is the top bit of its vault ids.
enum Mode { Validium, ZkRollup }

enum Standard { None, ERC20, ERC721, ERC1155 }

/// @dev How a token reads its minting blobs; see docs/protocol.md 1.
enum BlobScheme {
    Imx,
    Mintmark
}

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
    event CommitsPaused(bool paused);

    /// @dev Registration.
    error AssetInvalid(Standard standard, uint64 chainId, address token);
    error AssetAlreadyRegistered(uint64 chainId, address token, uint256 assetType);
    error AssetNotRegistered(uint64 chainId, uint256 assetType);
    error QuantumInvalid(uint256 quantum);
    error StandardMismatch(address token, Standard standard);
    error TokenWithoutCode(address token);
    /// @dev Roles.
    error ChangeNotDue(uint64 activeFrom);
    error OperatorNotTimeLocked();
    error CommitteeInvalid(uint256 members, uint8 threshold);
    error CommitteeNotAscending(uint256 index);
    error CommitteeNotScheduled();
    /// @dev Commits.
    error CommittingPaused();
    error NotPlainAccount(address caller);
    error BatchNumberMismatch(uint64 expected, uint64 given);
    error StateFull();
    error BatchRootZero();
    error VaultCountInvalid(uint32 vaultCount);
    error AttestationMalformed(uint256 length);
    error CommitteeMismatch(uint64 epoch);
    error SignersNotAscending(uint256 index);
    error SignatureNotMembers(address member);
    /// @dev Withdrawals.
    error HeaderMismatch(uint64 vaultId);
    error ProofInvalid(uint64 vaultId);
    error OtherChain(uint64 chainId);
    error AmountInvalid(uint64 vaultId, uint64 amount);
    error BlobLengthInvalid(uint64 vaultId, uint256 length);
    error NotMature(uint64 vaultId, uint64 maturesAt);
    error VaultExhausted(uint64 vaultId);
    error QuantityZero(uint64 vaultId);
    error QuantityTooLarge(uint64 vaultId, uint64 quantity, uint64 available);
    error RecipientZero(uint64 vaultId);
    error NotOwner(uint64 vaultId, address caller);
    error AuthorizationExpired(uint64 vaultId, uint64 deadline);
    error AuthorizationIsCancelled(uint64 vaultId, bytes32 digest);
    error SignatureInvalid(uint64 vaultId);
    error TokenRefused(address token, bytes reason);
    error NotDuplicates(uint64 earlierVaultId, uint64 laterVaultId);
    error NotSelf();
    error GasTooLow(uint256 index);


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

    function scheduleOperator(address operator) external;
    function activateOperator(address operator) external;
    function cancelOperator(address operator) external;
    function revokeOperator(address operator) external;
    function scheduleCommittee(address[] calldata members, uint8 threshold) external;
    function activateCommittee(address[] calldata members, uint8 threshold) external;
    function pauseCommits(bool paused) external;
    function MAX_ROLLUP_VAULTS() external view returns (uint256);
}
