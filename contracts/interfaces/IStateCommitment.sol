// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

/// @dev Which data-availability mode a batch belongs to; the value is the top bit of its vault ids.
enum Mode {
    Validium,
    ZkRollup
}

enum Standard {
    None,
    ERC20,
    ERC721,
    ERC1155
}

/// @dev How a token reads its minting blobs; see docs/protocol.md 1.
enum BlobScheme {
    Imx,
    Mintmark
}

/// @dev A vault's whole content: the preimage of its leaf.
struct Vault {
    /// @dev Mode, batch number and slot: the vault's place in the state.
    uint64 vaultId;
    /// @dev Where the token lives.
    uint64 chainId;
    address owner;
    uint256 assetType;
    /// @dev Quantized units; 1 for an ERC-721.
    uint64 amount;
    bytes blob;
}

/// @dev What L1 remembers of a committed batch, as one hash.
struct BatchHeader {
    bytes32 batchRoot;
    uint32 vaultCount;
    /// @dev Seconds since 1970.
    uint64 committedAt;
    /// @dev Place among the commits of both modes.
    uint64 sequence;
}

/// @dev Empty signature: the caller must be the owner. Otherwise the owner's EIP-712 `Withdrawal` message.
struct Authorization {
    /// @dev Last second at which the signature counts.
    uint64 deadline;
    /// @dev 65 bytes, 64 bytes by EIP-2098, or whatever the owner's ERC-1271 contract takes.
    bytes signature;
}

/// @dev The arguments of one withdrawal.
struct WithdrawalRequest {
    Vault vault;
    BatchHeader header;
    bytes32[] siblings;
    uint64 quantity;
    address recipient;
    Authorization authorization;
}

/// @title The L1 side of Mintmark: append-only state, and withdrawals that need nobody's help.
/// @notice Everything off-chain can be rebuilt from this contract's events and the commits' calldata.
interface IStateCommitment {
    // ---- Assets

    event AssetRegistered(
        uint256 indexed assetType, uint64 indexed chainId, address indexed token, Standard standard, uint256 quantum
    );

    /// @notice No standard, no chain or no token.
    error AssetInvalid(Standard standard, uint64 chainId, address token);
    /// @notice The contract is registered, as this asset type; a contract has one standard and one asset.
    error AssetAlreadyRegistered(uint64 chainId, address token, uint256 assetType);
    error AssetNotRegistered(uint64 chainId, uint256 assetType);
    /// @notice Not 1 to 2^128 - 1, or not 1 for an ERC-721 or ERC-1155.
    error QuantumInvalid(uint256 quantum);
    /// @notice The token says by ERC-165 that it is of another standard.
    error StandardMismatch(address token, Standard standard);
    error TokenWithoutCode(address token);

    /// @notice Registers a token for ever. Anyone may; it grants nothing, since a withdrawal still needs the token's own minter role.
    /// @dev A token of this chain must have code. What its `blobScheme()` answers now is kept; without an answer it is `Imx`.
    /// @param quantum Base units of one quantized unit.
    /// @return assetType StarkEx's asset type, 250 bits.
    function registerAsset(Standard standard, uint64 chainId, address token, uint256 quantum) external returns (uint256 assetType);

    /// @notice What an asset type stands for; `Standard.None` when nobody has registered it.
    function asset(uint64 chainId, uint256 assetType) external view returns (Standard standard, address token, uint256 quantum);

    // ---- Commits

    /// @notice All that {withdraw} will ask of the batch, and all that a reader needs to follow the state.
    event BatchCommitted(
        Mode indexed mode,
        uint64 indexed batchNumber,
        bytes32 batchRoot,
        uint32 vaultCount,
        bytes32 dataHash,
        uint64 committedAt,
        uint64 sequence
    );
    event CommitsPaused(bool paused);

    error CommittingPaused();
    /// @notice Rollup data must be the input of its own transaction, so that it can be read from the chain.
    error NotPlainAccount(address caller);
    /// @notice `given < expected` is a replay, `given > expected` a gap.
    error BatchNumberMismatch(uint64 expected, uint64 given);
    /// @notice The mode has taken 2^32 - 1 batches.
    error StateFull();
    error BatchRootZero();
    /// @notice Not 1 to 2^20.
    error VaultCountInvalid(uint32 vaultCount);
    /// @notice The attestation's length does not fit its threshold and member count.
    error AttestationMalformed(uint256 length);
    /// @notice Not the members and threshold of the committee of this epoch.
    error CommitteeMismatch(uint64 epoch);
    /// @notice The member index of signature `index` is not above the one before, or there is no such member.
    error SignersNotAscending(uint256 index);
    error SignatureNotMembers(address member);

    /// @notice Most vaults of one rollup batch; as many as surely fit a transaction.
    function MAX_ROLLUP_VAULTS() external view returns (uint256);

    /// @notice Appends a batch whose root is computed here, from its data. Operator only, a plain account, and not while paused.
    /// @dev Malformed data reverts with `BatchDataInvalid` of the library BatchData.
    /// @param batchNumber The next of its mode.
    /// @param data By the grammar of docs/protocol.md 4.
    function commitRollupBatch(uint64 batchNumber, bytes calldata data) external;

    /// @notice Appends a batch whose root the data availability committee vouches for. Operator only, and not while paused.
    /// @param attestation Threshold, members and exactly as many signatures as the threshold says; docs/protocol.md 5.
    function commitValidiumBatch(
        uint64 batchNumber, bytes32 batchRoot, uint32 vaultCount, bytes32 dataHash, bytes calldata attestation
    ) external;

    /// @notice Stops or resumes committing; administrator or guardian. Withdrawing cannot be stopped by anyone.
    function pauseCommits(bool paused) external;

    // ---- Withdrawals

    /// @param quantity What this withdrawal took, quantized.
    /// @param withdrawnTotal What has been withdrawn of the vault, this included.
    event Withdrawn(uint64 indexed vaultId, address indexed recipient, uint64 quantity, uint64 withdrawnTotal);
    /// @notice An item of a batch of withdrawals had no effect; `reason` is the error that it would have reverted with alone.
    event WithdrawalFailed(uint64 indexed vaultId, bytes reason);
    event AuthorizationCancelled(address indexed signer, bytes32 indexed digest);
    event DuplicateVoided(uint64 indexed earlierVaultId, uint64 indexed laterVaultId);

    /// @notice The header is not the one that was committed at the place that the vault's id names.
    error HeaderMismatch(uint64 vaultId);
    /// @notice The vault is not below the batch's root at its slot.
    error ProofInvalid(uint64 vaultId);
    /// @notice The token lives on another chain.
    error OtherChain(uint64 chainId);
    /// @notice Not 1 to 2^63 - 1, or not 1 for an ERC-721.
    error AmountInvalid(uint64 vaultId, uint64 amount);
    /// @notice Not 0 for an ERC-20, or not 1 to 255 for another.
    error BlobLengthInvalid(uint64 vaultId, uint256 length);
    /// @notice An ERC-721 vault waits until then, so that a duplicate can be voided.
    error NotMature(uint64 vaultId, uint64 maturesAt);
    /// @notice Withdrawn whole, or voided.
    error VaultExhausted(uint64 vaultId);
    error QuantityZero(uint64 vaultId);
    error QuantityTooLarge(uint64 vaultId, uint64 quantity, uint64 available);
    error RecipientZero(uint64 vaultId);
    /// @notice No signature, and the caller does not own the vault.
    error NotOwner(uint64 vaultId, address caller);
    error AuthorizationExpired(uint64 vaultId, uint64 deadline);
    error AuthorizationIsCancelled(uint64 vaultId, bytes32 digest);
    /// @notice Not the owner's signature over this quantity, recipient, deadline and what has been withdrawn before.
    error SignatureInvalid(uint64 vaultId);
    /// @notice `mintFor` reverted; `reason` is the first 256 bytes of what it said.
    error TokenRefused(address token, bytes reason);
    /// @notice Not two vaults of one ERC-721 token of this chain, the earlier one first.
    error NotDuplicates(uint64 earlierVaultId, uint64 laterVaultId);
    error NotSelf();
    /// @notice Item `index` of a batch would get less gas than is set aside for each.
    error GasTooLow(uint256 index);

    /// @notice Mints `quantity` of the vault's token to `recipient`, by the owner's own call or signature.
    /// @dev Effects before the token is called. A token that reverts leaves the vault as it was.
    /// @param siblings From the leaf upwards, as many as the height of the batch's tree.
    /// @param quantity Quantized units.
    function withdraw(
        Vault calldata vault,
        BatchHeader calldata header,
        bytes32[] calldata siblings,
        uint64 quantity,
        address recipient,
        Authorization calldata authorization
    ) external;

    /// @notice Many withdrawals, each on its own: one that fails is reported by {WithdrawalFailed} and undoes no other.
    /// @dev Reverts with {GasTooLow} rather than fail an item for want of gas.
    function withdrawBatch(WithdrawalRequest[] calldata requests) external returns (bool[] memory succeeded);

    /// @notice Makes an authorization that the caller signed, or might have, unusable for ever.
    /// @param digest EIP-712 digest of the `Withdrawal` message.
    function cancelAuthorization(bytes32 digest) external;

    /// @notice Exhausts the later of two vaults of one ERC-721 token. Anyone may, until it has been withdrawn.
    /// @dev Later by sequence, then by slot. The same token by its id, as the blob scheme in the registry derives it.
    function voidDuplicate(
        Vault calldata earlier,
        BatchHeader calldata earlierHeader,
        bytes32[] calldata earlierSiblings,
        Vault calldata later,
        BatchHeader calldata laterHeader,
        bytes32[] calldata laterSiblings
    ) external;

    /// @notice Reverts unless the vault is in the committed state.
    /// @return withdrawnAmount What has been withdrawn of it, quantized; 1 for a voided ERC-721.
    function verifyVault(Vault calldata vault, BatchHeader calldata header, bytes32[] calldata siblings)
        external
        view
        returns (uint64 withdrawnAmount);

    /// @notice What has been withdrawn of a vault, quantized; 1 for a voided ERC-721. The standard says where it is kept.
    function withdrawn(uint64 vaultId, Standard standard) external view returns (uint64);

    // ---- State

    /// @notice Hash of the header of a batch; zero when it has not been committed.
    function batchHeaderHash(Mode mode, uint64 batchNumber) external view returns (bytes32);
    function batchCounts() external view returns (uint64 validium, uint64 rollup);
    /// @notice Root of a mode's tree of batches.
    function stateRoot(Mode mode) external view returns (bytes32);
    /// @notice One hash over both roots and counts, this chain and this contract.
    function stateCommitment() external view returns (bytes32);
    /// @notice Hash of members, threshold and epoch; docs/protocol.md 5.
    function committee() external view returns (bytes32 committeeHash, uint64 epoch);
    /// @notice ERC-721 is available from 4, ERC-20 and ERC-1155 from 5.
    function engineVersion() external pure returns (uint256);
    /// @notice Seconds that an ERC-721 vault waits after its commit.
    function maturity() external view returns (uint64);

    // ---- Roles

    /// @param activeFrom Seconds since 1970; 0 when the announcement is withdrawn.
    event OperatorScheduled(address indexed operator, uint64 activeFrom);
    event CommitteeScheduled(uint64 activeFrom, uint8 threshold, address[] members);
    event CommitteeChanged(uint64 indexed epoch, uint8 threshold, address[] members);

    /// @notice Not announced (0), or announced for a later time.
    error ChangeNotDue(uint64 activeFrom);
    /// @notice The operator's role is granted by {scheduleOperator} and {activateOperator} only.
    error OperatorNotTimeLocked();
    error CommitteeInvalid(uint256 members, uint8 threshold);
    /// @notice Member `index` is not above the one before.
    error CommitteeNotAscending(uint256 index);
    /// @notice Another committee than this one was announced.
    error CommitteeNotScheduled();

    /// @notice Announces an operator; administrator only.
    function scheduleOperator(address operator) external;
    /// @notice Grants the role once the delay has passed. Anyone may.
    function activateOperator(address operator) external;
    /// @notice Withdraws the announcement; administrator or guardian.
    function cancelOperator(address operator) external;
    /// @notice Takes the role and any announcement away at once; administrator or guardian.
    function revokeOperator(address operator) external;
    /// @notice Announces a committee, in place of any announced before; administrator only.
    /// @param members Strictly ascending.
    function scheduleCommittee(address[] calldata members, uint8 threshold) external;
    /// @notice Puts the announced committee in office under the next epoch once the delay has passed. Anyone may.
    function activateCommittee(address[] calldata members, uint8 threshold) external;
}
