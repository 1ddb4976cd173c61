// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

/// @dev Longest change delay and maturity, in seconds. A longer one, by mistake, would lock out
/// operators or owners.
uint64 constant MAX_DELAY = 30 days;

/// @dev Most vaults of one batch.
uint256 constant MAX_BATCH_VAULTS = 1 << 20;
/// @dev The bits of a vault id that are its slot in the batch.
uint64 constant SLOT_MASK = uint64(MAX_BATCH_VAULTS - 1);
/// @dev The bit of the ids of vaults that L1 itself has made. No batch has it.
uint64 constant MADE = 1 << 62;

/// @dev Bits of an asset's `flags`. Owners can transfer its vaults.
uint8 constant TRANSFERABLE = 1;
/// @dev Some id of the asset, an ERC-721, has entered.
uint8 constant ENTERED = 2;
/// @dev Only vaults that L1 has made count.
uint8 constant MADE_ONLY = 4;

/// @notice A change delay or maturity above 30 days.
error DelayTooLong(uint64 delay);

function checkedDelay(uint64 delay) pure returns (uint64) {
    if (delay > MAX_DELAY) revert DelayTooLong(delay);
    return delay;
}

/// @dev The data-availability mode of a batch. Its value is the top bit of the batch's vault ids.
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

/// @dev The way in which a token reads its minting blobs; docs/protocol.md 1.
enum MintingBlobScheme {
    Imx,
    Mintmark,
    Raw32
}

/// @dev A vault's whole content. {VaultWords} makes its words of it, and of its asset's place.
struct Vault {
    /// @dev Mode, batch number and slot: the vault's place in the state.
    uint64 vaultId;
    /// @dev The chain of the token.
    uint64 chainId;
    address owner;
    uint256 assetType;
    /// @dev Quantized units; 1 for an ERC-721.
    uint64 amount;
    bytes mintingBlob;
}

/// @dev The header of a committed batch. L1 keeps its hash.
struct BatchHeader {
    bytes32 batchRoot;
    uint32 vaultCount;
    /// @dev Seconds since 1970.
    uint64 committedAt;
    /// @dev Place among the commits of both modes.
    uint64 sequence;
}

/// @dev The proof that leads from a vault and its asset to the batch root; docs/protocol.md 2.
struct VaultPath {
    /// @dev In the vault tree, from the leaf upwards, as many as its height. For a blob batch: what
    /// opens the vault's words, as docs/protocol.md 6 says.
    bytes32[] siblings;
    /// @dev The asset's place in the batch's manifest.
    uint8 assetIndex;
    /// @dev The asset's siblings in the manifest, from the leaf upwards, at most eight.
    bytes32[] assetSiblings;
}

/// @dev Withdrawals of vaults of one batch and one asset of this chain, for
/// {IWithdrawals-withdrawBatch}.
struct WithdrawalGroup {
    Mode mode;
    uint64 batchNumber;
    BatchHeader header;
    uint256 assetType;
    /// @dev The asset's place in the batch's manifest.
    uint8 assetIndex;
    /// @dev The asset's siblings in the manifest, from the leaf upwards, at most eight.
    bytes32[] assetSiblings;
    /// @dev The items, one behind the other, in the format of docs/protocol.md 6.
    bytes items;
}

/// @dev The terms that all vaults of a batch and an asset share.
struct WithdrawalTerms {
    bytes32 batchRoot;
    /// @dev Root of the batch's manifest, which names the asset.
    bytes32 manifestRoot;
    uint32 vaultCount;
    /// @dev The asset's place in the manifest.
    uint8 assetIndex;
    address token;
    Standard standard;
    MintingBlobScheme scheme;
    /// @dev Base units of one quantized unit.
    uint256 quantum;
    /// @dev {TRANSFERABLE}: a vault may be spent. {ENTERED}, {MADE_ONLY}: a vault may not count.
    uint8 flags;
}

/// @dev One item of the EIP-712 message `Transfers`.
struct Transfer {
    uint64 vaultId;
    /// @dev Units of the payee; 0 for the whole rest.
    uint64 amount;
    /// @dev The payee; the zero address burns.
    address to;
}
