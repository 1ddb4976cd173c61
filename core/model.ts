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
/** Both modes. */
export const MODES = ["validium", "zk-rollup"] as const satisfies readonly Mode[];

/** The token standards. */
export type Standard = "erc20" | "erc721" | "erc1155";
/** All token standards. */
export const STANDARDS = ["erc20", "erc721", "erc1155"] as const satisfies readonly Standard[];

/** How a minting blob names a token id; see docs/protocol.md 1. */
export const BLOB_SCHEMES = ["mintmark", "imx", "raw32"] as const;
/** A scheme of minting blobs. */
export type BlobScheme = (typeof BLOB_SCHEMES)[number];

/** Sandbox and live keys, data and chains never mix. */
export const ENVIRONMENTS = ["sandbox", "live"] as const;
/** Which environment an engine and its keys belong to. */
export type Environment = (typeof ENVIRONMENTS)[number];

/** The amounts a vault or mint can hold: 1 to 2^63 - 1. */
export const MAX_AMOUNT = (1n << 63n) - 1n;
/** Most characters of a reference, the caller's own name for a thing. */
export const MAX_REFERENCE = 64;
/** Most slots of one batch: 2^20. */
export const MAX_BATCH_VAULTS = 1 << 20;

/** A tenant. */
export interface Application {
  readonly applicationId: Uuid;
  readonly name: string;
  readonly suspended: boolean;
  /** Of its mints that name none, of assets that have none of their own; null: they must name one. */
  readonly dataAvailabilityMode: Mode | null;
  readonly createdAt: number;
}

/** What a key can be allowed to do. */
export const SCOPES = ["mint", "read", "users", "assets", "withdraw", "webhooks"] as const;
/** One thing that a key is allowed to do. */
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
  /** The application's own name for the user, at most 64 characters. */
  readonly reference: string | null;
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
  /** Whether minting blobs may be any bytes; otherwise each is text. */
  readonly rawBlobs: boolean;
  /** Of its mints that name none; null: the application's. */
  readonly dataAvailabilityMode: Mode | null;
  /** The id that the engine gives next; null where mints name their ids. */
  readonly nextTokenId: bigint | null;
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
/** Every status, in order. */
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
  /** The asset's: base units in one unit of the amounts below, and digits of the token's decimal amounts. */
  readonly quantum: bigint;
  readonly decimals: number;
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
  /** The application's own name for the mint. */
  readonly reference: string | null;
  readonly userId: Uuid;
  readonly vaultId: VaultId;
  readonly assetId: Uuid;
  /** The asset's, as in {@link Vault}. */
  readonly quantum: bigint;
  readonly decimals: number;
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
  /** The assets that the batch holds, ascending by chain and asset type; none while it is open. */
  readonly assets: readonly { readonly chainId: bigint; readonly assetType: Hash }[];
  /** Root of the tree of its vaults. */
  readonly content: Hash | null;
  /**
   * The assets that L1 leaves out for want of their issuer's consent, by their places in `assets`, and why; null for none. Their vaults pay
   * nobody, and their mints fail when the commit is final.
   */
  readonly leftOut: readonly { readonly asset: number; readonly failure: string }[] | null;
  /** Over the content and the manifest of the assets. */
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

/** A withdrawal of a vault to L1, as its application sees it. */
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

/**
 * `validium-12`.
 *
 * @example
 * batchIdOf("validium", 12); // "validium-12"
 */
export function batchIdOf(mode: Mode, batchNumber: number): string {
  return `${mode}-${batchNumber}`;
}

/** Bounds of one request and of one batch. A batch is sealed by itself before it passes one of its bounds. */
export interface Limits {
  readonly usersPerRequest: number;
  readonly mintsPerRequest: number;
  /** Most vaults of a batch, 1 to 2^20, by mode. */
  readonly batchVaults: Readonly<Record<Mode, number>>;
  /** Most bytes of a validium batch's encoded data: what the committee's members take. */
  readonly validiumBytes: number;
  /** Most bytes of a rollup batch's encoded data; the transaction must stay below 128 KB. */
  readonly rollupBytes: number;
  /** Most gas that committing a rollup batch may take, by an upper bound that also holds once slots of it are void. */
  readonly rollupGas: number;
  /**
   * Most vaults that L1 has not committed; a mint that could make more is refused with `backpressure`. null, the default, for no bound:
   * an engine whose batches nobody commits would stop for good.
   */
  readonly uncommittedVaults: number | null;
}

/** A batch that holds vaults of the application, as it stood then. */
export interface BatchEventData {
  /** `validium-12`, `zk-rollup-3`. */
  readonly batchId: string;
  readonly dataAvailabilityMode: Mode;
  /** Vaults of all applications together. */
  readonly vaultCount: number;
  readonly batchRoot: Hash;
  readonly l1TxHash: Hash | null;
  readonly l1BlockNumber: bigint | null;
}

/** A withdrawal as it stood then. */
export interface WithdrawalEventData {
  readonly withdrawalId: Uuid;
  readonly userId: Uuid;
  /** Of the vault's token, and of the transaction and block below. */
  readonly chainId: bigint;
  readonly vaultId: VaultId;
  readonly quantity: bigint;
  readonly recipient: Address;
  readonly l1TxHash: Hash | null;
  readonly l1BlockNumber: bigint | null;
  /** Why L1 refused an attempt, or why the withdrawal has failed. */
  readonly failure: string | null;
}

/** What each type of event tells. Types are only added to; docs/api.md lists them. */
export interface EventData {
  /** A request was minted: one event however many mints it holds. */
  readonly "mint.accepted": { readonly mintId: Uuid; readonly users: number; readonly mints: number };
  /** L1 refuses these vaults, so they are void and their mints have failed: consecutive vault ids of one batch. */
  readonly "mint.failed": { readonly firstVaultId: VaultId; readonly vaults: number; readonly failure: string };
  readonly "asset.enabled": { readonly assetId: Uuid };
  readonly "asset.disabled": { readonly assetId: Uuid };
  readonly "batch.sealed": BatchEventData;
  /** A transaction that commits the batch is on its way; again for each transaction that replaces another. */
  readonly "batch.submitted": BatchEventData;
  readonly "batch.settled": BatchEventData;
  readonly "batch.finalized": BatchEventData;
  /** A reorganisation of L1 took the batch back from settled to submitted. */
  readonly "batch.reverted": BatchEventData;
  readonly "withdrawal.accepted": WithdrawalEventData;
  readonly "withdrawal.submitted": WithdrawalEventData;
  /** L1 refused an attempt; the withdrawal stays pending. */
  readonly "withdrawal.attempt_refused": WithdrawalEventData;
  readonly "withdrawal.settled": WithdrawalEventData;
  readonly "withdrawal.finalized": WithdrawalEventData;
  readonly "withdrawal.failed": WithdrawalEventData;
  /** A reorganisation of L1 made the withdrawal pending again. */
  readonly "withdrawal.reverted": WithdrawalEventData;
  /** A webhook has failed for so long that nothing is delivered to it until it is enabled again. */
  readonly "webhook.disabled": { readonly webhookId: Uuid; readonly failure: string };
}

/** A type of event. */
export type EventType = keyof EventData;

/** One thing that an application is told of. What it tells never changes: it is written once, with what happened. */
export type ApplicationEvent = {
  readonly [T in EventType]: {
    /** 1, 2, 3 … within the application, without a gap. */
    readonly sequence: number;
    readonly type: T;
    /** ms since 1970; never smaller than the event's before. */
    readonly createdAt: number;
    readonly data: EventData[T];
  };
}[EventType];
