/** The engine's domain in the shapes that callers see: plain, readonly, amounts as bigint (quantized units), times in ms since 1970. */

/** `0x` and lower-case hex. */
export type Hex = `0x${string}`;
/** 20 bytes; compared and stored in lower case. */
export type Address = Hex;
/** 32 bytes. */
export type Hash = Hex;
/** RFC 9562, lower case. */
export type Uuid = string;
/** u64 `mode << 63 | batchNumber << 20 | slot`; a decimal string in JSON. */
export type VaultId = bigint;

/** Where a mint's data lives: with the committee, or in L1 calldata. */
export type Mode = "validium" | "zk-rollup";
export const MODES = ["validium", "zk-rollup"] as const satisfies readonly Mode[];

export type Standard = "erc20" | "erc721" | "erc1155";
export const STANDARDS = ["erc20", "erc721", "erc1155"] as const satisfies readonly Standard[];

/** How a minting blob names a token id; see docs/protocol.md 1. */
export const BLOB_SCHEMES = ["mintmark", "imx"] as const;
export type BlobScheme = (typeof BLOB_SCHEMES)[number];

/** Sandbox and live keys, data and chains never mix. */
export const ENVIRONMENTS = ["sandbox", "live"] as const;
export type Environment = (typeof ENVIRONMENTS)[number];

/** The amounts a vault or mint can hold: 1 to 2^63 - 1. */
export const MAX_AMOUNT = (1n << 63n) - 1n;
/** Most slots of one batch: 2^20. */
export const MAX_BATCH_VAULTS = 1 << 20;

/** A tenant. */
export interface Application {
  readonly applicationId: Uuid;
  readonly name: string;
  readonly suspended: boolean;
  readonly createdAt: number;
}

export const SCOPES = ["mint", "read", "users", "assets", "withdraw", "webhooks"] as const;
export type Scope = (typeof SCOPES)[number];

/** What is known of an API key after it was issued; never its secret. */
export interface ApiKey {
  readonly keyId: string;
  readonly applicationId: Uuid;
  readonly scopes: readonly Scope[];
  /** Most mint entries this key may ever make; null for no bound. */
  readonly mintQuota: bigint | null;
  readonly mintsUsed: bigint;
  readonly createdAt: number;
  readonly expiresAt: number | null;
  readonly revokedAt: number | null;
}

/** Who is calling, established by `authenticate`. */
export interface Principal {
  readonly applicationId: Uuid;
  readonly keyId: string;
  readonly scopes: readonly Scope[];
}

/** A user of an application and the L1 address that owns what is minted for it; the address never changes. */
export interface User {
  readonly userId: Uuid;
  readonly ownerAddress: Address;
  readonly createdAt: number;
}

/** A token contract known to the engine, as one application sees it. */
export interface Asset {
  readonly assetId: Uuid;
  readonly standard: Standard;
  readonly chainId: bigint;
  readonly contractAddress: Address;
  readonly quantum: bigint;
  /** StarkEx asset type, 32 bytes. */
  readonly assetType: Hash;
  readonly name: string;
  readonly symbol: string;
  readonly decimals: number;
  readonly blobScheme: BlobScheme;
  /** Most quantized units that may ever be minted; null for no bound. */
  readonly supplyCap: bigint | null;
  readonly minted: bigint;
  readonly whitelisted: boolean;
  /** Registered in the settlement contract's registry. */
  readonly registered: boolean;
  /** Enabled for the application that asks. */
  readonly enabled: boolean;
  /** Whether the token's minter role is locked for ever; null when L1 has not been asked. */
  readonly minterLocked: boolean | null;
  readonly mintable: boolean;
  /** Whether a mint would be taken now; otherwise `unavailableReason` says what is missing. */
  readonly mintingAvailable: boolean;
  readonly unavailableReason: string | null;
}

/** `accepted → batched → submitted → settled → finalized`, or `failed`. */
export type Status = "accepted" | "batched" | "submitted" | "settled" | "finalized" | "failed";
export const STATUSES = [
  "accepted",
  "batched",
  "submitted",
  "settled",
  "finalized",
  "failed",
] as const satisfies readonly Status[];

/** What an owner holds of one token in one slot of one batch. */
export interface Vault {
  readonly vaultId: VaultId;
  readonly userId: Uuid;
  readonly ownerAddress: Address;
  readonly assetId: Uuid;
  readonly assetType: Hash;
  readonly mintingBlob: Hex;
  /** null for ERC-20. */
  readonly tokenId: bigint | null;
  readonly dataAvailabilityMode: Mode;
  readonly amount: bigint;
  /** amount less what is withdrawn and what pending withdrawals reserve. */
  readonly availableBalance: bigint;
  readonly withdrawnBalance: bigint;
  /** `validium-12`, `zk-rollup-3`. */
  readonly batchId: string;
  readonly status: Status;
  readonly createdAt: number;
  readonly updatedAt: number;
}

/** One mint entry or one withdrawal, through its whole life. */
export interface Transaction {
  /** `<mintId>.<position>` for mints, the withdrawal's id for withdrawals. */
  readonly transactionId: string;
  /** Strictly increasing within an application. */
  readonly sequence: number;
  readonly type: "mint" | "withdrawal";
  readonly status: Status;
  readonly mintId: Uuid | null;
  readonly userId: Uuid;
  readonly vaultId: VaultId;
  readonly assetId: Uuid;
  readonly mintingBlob: Hex;
  readonly amount: bigint;
  readonly dataAvailabilityMode: Mode;
  readonly batchId: string;
  readonly l1TxHash: Hash | null;
  readonly l1BlockNumber: bigint | null;
  readonly failure: string | null;
  /** When each status was reached. */
  readonly timestamps: Readonly<Partial<Record<Status, number>>>;
}

/** A batch that is open, sealed or committed. */
export interface Batch {
  readonly batchId: string;
  readonly mode: Mode;
  readonly batchNumber: number;
  readonly vaultCount: number;
  /** Mint entries that went into it; several may add up in one vault. */
  readonly mintCount: number;
  readonly status: "open" | "sealed" | "submitted" | "settled" | "finalized";
  readonly batchRoot: Hash | null;
  readonly dataHash: Hash | null;
  /** Root of the mode's state tree after this batch. */
  readonly stateRoot: Hash | null;
  readonly l1TxHash: Hash | null;
  readonly l1BlockNumber: bigint | null;
  readonly committedAt: bigint | null;
  /** Global order of commits on L1. */
  readonly l1Sequence: bigint | null;
  readonly timestamps: Readonly<Partial<Record<"open" | "sealed" | "submitted" | "settled" | "finalized", number>>>;
}

export interface Withdrawal {
  readonly withdrawalId: Uuid;
  readonly userId: Uuid;
  /** Of the vault's token, and of the transaction and block below. */
  readonly chainId: bigint;
  readonly vaultId: VaultId;
  readonly quantity: bigint;
  readonly recipient: Address;
  readonly withdrawnBefore: bigint;
  /** Seconds since 1970, as in the owner's message. */
  readonly deadline: bigint;
  readonly status: "accepted" | "submitted" | "settled" | "finalized" | "failed";
  readonly l1TxHash: Hash | null;
  readonly l1BlockNumber: bigint | null;
  readonly failure: string | null;
  readonly createdAt: number;
  readonly updatedAt: number;
}

/** One page of a list, keyset on an ever-increasing sequence: stable while new entries arrive. */
export interface Page<T> {
  readonly data: readonly T[];
  readonly nextCursor: string | null;
  readonly hasMore: boolean;
  readonly limit: number;
}

/** `validium-12`. */
export function batchIdOf(mode: Mode, batchNumber: number): string {
  return `${mode}-${batchNumber}`;
}
