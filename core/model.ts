/**
 * The engine's domain as callers see it. Amounts are bigint (quantized units), times milliseconds
 * since 1970.
 */

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

/** Both modes. */
export const MODES = ["validium", "zk-rollup"] as const;
/** The place of a mint's data: the committee, or L1 calldata. */
export type Mode = (typeof MODES)[number];

/** The series of vaults: the batches of each mode, and what L1 made by itself. */
export const SERIES = [...MODES, "made"] as const;
/** See {@link SERIES}. */
export type Series = (typeof SERIES)[number];

/**
 * Mints with a committee, in calldata, or in blobs; and transfers. The value on L1 is the position
 * here.
 */
export const BATCH_KINDS = ["validium", "calldata", "blobs", "transfers"] as const;
/** A kind of batch. Those of `zk-rollup` hold mints in calldata or in blobs, or transfers. */
export type BatchKind = (typeof BATCH_KINDS)[number];

/** All token standards. */
export const STANDARDS = ["erc20", "erc721", "erc1155"] as const;
/** A token standard. */
export type Standard = (typeof STANDARDS)[number];

/** The rule by which a minting blob names a token id; docs/protocol.md 1. */
export const MINTING_BLOB_SCHEMES = ["mintmark", "imx", "raw32"] as const;
/** A scheme of minting blobs. */
export type MintingBlobScheme = (typeof MINTING_BLOB_SCHEMES)[number];

/** Keys, data and chains of sandbox and live never mix. */
export const ENVIRONMENTS = ["sandbox", "live"] as const;
/** The environment of an engine and its keys. */
export type Environment = (typeof ENVIRONMENTS)[number];

/** The amounts a vault or mint can hold: 1 to 2^63 - 1. */
export const MAX_AMOUNT = (1n << 63n) - 1n;
/** Most characters of a reference, which is the caller's own name for a thing. */
export const MAX_REFERENCE = 64;
/** Most slots of one batch: 2^20. */
export const MAX_BATCH_VAULTS = 1 << 20;

/** A tenant. */
export interface Application {
  readonly applicationId: Uuid;
  readonly name: string;
  readonly suspended: boolean;
  /**
   * The mode of mints without one, of assets without a default of their own; null: they need one.
   */
  readonly dataAvailabilityMode: Mode | null;
  readonly createdAt: number;
}

/** The permissions of keys. */
export const SCOPES = [
  "mint",
  "read",
  "users",
  "assets",
  "withdraw",
  "webhooks",
  "transfer",
] as const;
/** One permission of a key. */
export type Scope = (typeof SCOPES)[number];

/** Roles of people, from the least: three of an application, then the one of the whole engine. */
export const ROLES = ["viewer", "developer", "admin", "operator"] as const;
/** The role of a person. */
export type Role = (typeof ROLES)[number];

/** An API key without its secret. */
export interface ApiKey {
  readonly keyId: string;
  readonly applicationId: Uuid;
  /** The name that its holder gave it; null for none. */
  readonly name: string | null;
  readonly scopes: readonly Scope[];
  /** Most mint entries that this key may ever make; null for no limit. */
  readonly mintQuota: bigint | null;
  readonly mintsUsed: bigint;
  readonly createdAt: number;
  readonly expiresAt: number | null;
  readonly revokedAt: number | null;
}

/** The authenticated caller. */
export interface Principal {
  readonly applicationId: Uuid;
  readonly keyId: string;
  readonly scopes: readonly Scope[];
}

/** A user of an application and the L1 address that owns its mints. The address never changes. */
export interface User {
  readonly userId: Uuid;
  readonly ownerAddress: Address;
  /** The application's own name for the user, at most 64 characters. */
  readonly reference: string | null;
  readonly createdAt: number;
}

/** A token contract that the engine has, as shown to one application. */
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
  readonly mintingBlobScheme: MintingBlobScheme;
  /** Whether minting blobs can be any bytes; otherwise each is text. */
  readonly rawMintingBlobs: boolean;
  /** The mode of its mints without one; null: the application's. */
  readonly dataAvailabilityMode: Mode | null;
  /** The id that the engine gives next; null where mints name their ids. */
  readonly nextTokenId: bigint | null;
  /** Most quantized units that can ever be minted; null for no bound. */
  readonly supplyCap: bigint | null;
  readonly minted: bigint;
  readonly whitelisted: boolean;
  /** Registered in the settlement contract's registry. */
  readonly registered: boolean;
  /** Enabled for the application that asks. */
  readonly enabled: boolean;
  /** Whether the token's minter role is locked forever; null before L1 was asked. */
  readonly minterLocked: boolean | null;
  /** Whether owners can transfer vaults of it; null before L1 was asked. */
  readonly transferable: boolean | null;
  readonly mintable: boolean;
  /** Whether a mint would be accepted now; otherwise `unavailableReason` says why not. */
  readonly mintingAvailable: boolean;
  readonly unavailableReason: string | null;
}

/** Every status, in order. */
export const STATUSES = [
  "accepted",
  "batched",
  "submitted",
  "settled",
  "finalized",
  "failed",
] as const;
/** `accepted → batched → submitted → settled → finalized`, or `failed`. */
export type Status = (typeof STATUSES)[number];

/** An owner's holding of one token in one slot of one batch. */
export interface Vault {
  readonly vaultId: VaultId;
  readonly userId: Uuid;
  readonly ownerAddress: Address;
  readonly assetId: Uuid;
  readonly assetType: Hash;
  /**
   * The asset's: base units in one unit of the amounts below, and digits of the token's decimal
   * amounts.
   */
  readonly quantum: bigint;
  readonly decimals: number;
  /** These two are the asset's. */
  readonly name: string;
  readonly symbol: string;
  readonly mintingBlob: Hex;
  /** null for ERC-20. */
  readonly tokenId: bigint | null;
  /** `made` for a vault that L1 made by itself. */
  readonly dataAvailabilityMode: Series;
  readonly amount: bigint;
  /** The amount in whole tokens, such as "12.5", as a mint gives it. */
  readonly amountDecimal: string;
  /**
   * amount less what is withdrawn, transferred, and reserved by a pending withdrawal or transfer.
   */
  readonly availableBalance: bigint;
  readonly withdrawnBalance: bigint;
  /** Units that a transfer has put into other vaults. */
  readonly transferredBalance: bigint;
  /** `validium-12`, `zk-rollup-3`; `made-7` for what L1 made by itself. */
  readonly batchId: string;
  readonly status: Status;
  /**
   * Why the token would refuse the committed vault on L1, when it was last asked; absent while it
   * would not.
   */
  readonly refusal?: string;
  readonly createdAt: number;
  readonly updatedAt: number;
}

/** One mint entry, withdrawal or deposit, or one vault that a transfer makes, with its history. */
export interface Transaction
  extends Pick<
      Vault,
      | "userId"
      | "vaultId"
      | "assetId"
      | "quantum"
      | "decimals"
      | "name"
      | "symbol"
      | "mintingBlob"
      | "tokenId"
      | "amount"
      | "amountDecimal"
    >,
    Pick<Vault, "dataAvailabilityMode" | "batchId"> {
  /**
   * `<mintId>.<position>`, the withdrawal's id, `<transferId>.<position>`, or the vault id of a
   * deposit.
   */
  readonly transactionId: string;
  /** Strictly increasing within an application. */
  readonly sequence: number;
  readonly type: "mint" | "withdrawal" | "transfer" | "deposit";
  readonly status: Status;
  readonly mintId: Uuid | null;
  /** The application's own name for the mint. */
  readonly reference: string | null;
  readonly l1TxHash: Hash | null;
  readonly l1BlockNumber: bigint | null;
  readonly failure: string | null;
  /** The time of each reached status. */
  readonly timestamps: Readonly<Partial<Record<Status, number>>>;
}

/** An open, sealed or committed batch. */
export interface Batch {
  readonly batchId: string;
  readonly mode: Mode;
  readonly batchNumber: number;
  /** Where its data are. The seal decides it: an open `zk-rollup` batch shows calldata. */
  readonly kind: BatchKind;
  readonly vaultCount: number;
  /** Number of its mint entries; several can add up in one vault. */
  readonly mintCount: number;
  readonly status: "open" | "sealed" | "submitted" | "settled" | "finalized";
  /** The assets of the batch, ascending by chain and asset type; none while it is open. */
  readonly assets: readonly { readonly chainId: bigint; readonly assetType: Hash }[];
  /** Root of its vault tree; for blobs, the hash of count, manifest and versioned hashes. */
  readonly content: Hash | null;
  /**
   * The assets that L1 leaves out because their issuer's consent is missing, by position in
   * `assets`, with the reason; null for none. Their vaults pay nobody, and their mints fail when
   * the commit is final.
   */
  readonly leftOut: readonly { readonly asset: number; readonly failure: string }[] | null;
  /** The root over the content and the manifest of assets. */
  readonly batchRoot: Hash | null;
  readonly dataHash: Hash | null;
  /** Root of the mode's state tree after this batch. */
  readonly stateRoot: Hash | null;
  readonly l1TxHash: Hash | null;
  readonly l1BlockNumber: bigint | null;
  readonly committedAt: bigint | null;
  /** Global order of commits on L1. */
  readonly l1Sequence: bigint | null;
  readonly timestamps: Readonly<
    Partial<Record<"open" | "sealed" | "submitted" | "settled" | "finalized", number>>
  >;
}

/** A withdrawal of a vault to L1, as shown to its application. */
export interface Withdrawal {
  readonly withdrawalId: Uuid;
  readonly userId: Uuid;
  /** The chain of the vault's token, and of the transaction and block below. */
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

/** A vault that L1 made for a user of the application: a token came back from L1. */
export interface Deposit
  extends Pick<
    Vault,
    | "vaultId"
    | "userId"
    | "ownerAddress"
    | "assetId"
    | "quantum"
    | "decimals"
    | "name"
    | "symbol"
    | "mintingBlob"
    | "tokenId"
    | "amount"
    | "amountDecimal"
  > {
  /** The making is in this transaction, and is final. */
  readonly l1TxHash: Hash;
  readonly l1BlockNumber: bigint;
  /** When it became the user's, in milliseconds since 1970. */
  readonly createdAt: number;
}

/**
 * One page of a list. Pages follow an increasing sequence, so they are stable while new entries
 * arrive.
 */
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
export function batchIdOf(mode: Series, batchNumber: number): string {
  return `${mode}-${batchNumber}`;
}

/** Limits of a request and of a batch. A batch is sealed before it exceeds a limit. */
export interface Limits {
  readonly usersPerRequest: number;
  readonly mintsPerRequest: number;
  /**
   * Most vaults of a batch, 1 to 2^20, by mode. While rollup batches go into blobs, {@link
   * blobElements} bounds them instead.
   */
  readonly batchVaults: Readonly<Record<Mode, number>>;
  /** Most bytes of a validium batch's encoded data. The committee's members accept no more. */
  readonly validiumBytes: number;
  /**
   * Most bytes of encoded data of a rollup batch in calldata; the transaction must stay below 128
   * KB.
   */
  readonly rollupBytes: number;
  /**
   * Most field elements of a batch in blobs, 1 to 24,576; a blob has 4,096. A usual vault takes
   * one, and one of a long text up to ten.
   */
  readonly blobElements: number;
  /** Most gas for committing a batch of transfers, by an upper bound. */
  readonly rollupGas: number;
  /**
   * Most vaults that L1 has not committed; mints beyond it are refused with `backpressure`. null,
   * the default, for no bound: without commits, an engine with a bound would stop forever.
   */
  readonly uncommittedVaults: number | null;
  /**
   * Most vaults of a mode, void ones included; mints beyond it are refused with `places_exhausted`.
   * At most 1,800,000,000, the default: the store's index of tokens has no more places.
   */
  readonly places: number;
}

/** A batch with vaults of the application, at the time of the event. */
export interface BatchEventData {
  /** `validium-12`, `zk-rollup-3`. */
  readonly batchId: string;
  readonly dataAvailabilityMode: Mode;
  /** Vaults of all applications. */
  readonly vaultCount: number;
  readonly batchRoot: Hash;
  readonly l1TxHash: Hash | null;
  readonly l1BlockNumber: bigint | null;
}

/**
 * A withdrawal at the time of the event. `failure`: why L1 refused an attempt, or why the
 * withdrawal failed.
 */
export interface WithdrawalEventData
  extends Pick<
      Withdrawal,
      "withdrawalId" | "userId" | "chainId" | "vaultId" | "quantity" | "recipient"
    >,
    Pick<Withdrawal, "l1TxHash" | "l1BlockNumber" | "failure"> {}

/** A deposit at the time of the event. */
export interface DepositEventData
  extends Pick<
    Deposit,
    "userId" | "vaultId" | "assetId" | "tokenId" | "amount" | "l1TxHash" | "l1BlockNumber"
  > {}

/** An order at the time of the event; `core/orders` has all of it. */
export interface OrderEventData {
  readonly orderId: Uuid;
  /** The maker's user. */
  readonly userId: Uuid;
  readonly vaultId: VaultId;
  /** The order that took it, or that it took; null without one. */
  readonly counterOrderId: Uuid | null;
  /** The transaction that was sent to settle it last; null before. */
  readonly l1TxHash: Hash | null;
  /** Why it has ended, or why L1 does not settle it now; null otherwise. */
  readonly failure: string | null;
}

/** The data of each type of event. New types may be added; docs/events.md lists them. */
export interface EventData {
  /** A request was minted. One event, whatever its number of mints. */
  readonly "mint.accepted": {
    readonly mintId: Uuid;
    readonly users: number;
    readonly mints: number;
  };
  /**
   * L1 refuses these vaults, so they are void and their mints have failed. The ids are consecutive
   * in one batch.
   */
  readonly "mint.failed": {
    readonly firstVaultId: VaultId;
    readonly vaults: number;
    readonly failure: string;
  };
  readonly "asset.enabled": { readonly assetId: Uuid };
  readonly "asset.disabled": { readonly assetId: Uuid };
  readonly "batch.sealed": BatchEventData;
  /** A transaction that commits the batch was sent; repeated for each replacement. */
  readonly "batch.submitted": BatchEventData;
  readonly "batch.settled": BatchEventData;
  readonly "batch.finalized": BatchEventData;
  /** A reorganisation of L1 moved the batch from settled to submitted. */
  readonly "batch.reverted": BatchEventData;
  readonly "withdrawal.accepted": WithdrawalEventData;
  readonly "withdrawal.submitted": WithdrawalEventData;
  /** L1 refused an attempt; the withdrawal stays pending. */
  readonly "withdrawal.attempt_refused": WithdrawalEventData;
  readonly "withdrawal.settled": WithdrawalEventData;
  readonly "withdrawal.finalized": WithdrawalEventData;
  readonly "withdrawal.failed": WithdrawalEventData;
  /** A reorganisation of L1 moved the withdrawal to pending. */
  readonly "withdrawal.reverted": WithdrawalEventData;
  /** An owner's signed transfers were taken. `redemptions` of them burn what they take. */
  readonly "transfer.accepted": {
    readonly transferId: Uuid;
    readonly transfers: number;
    readonly redemptions: number;
  };
  /**
   * One of them redeems: all that is left of the vault is burnt, or `amount` units of it unless
   * that is 0.
   */
  readonly "transfer.redeemed": {
    readonly transferId: Uuid;
    readonly userId: Uuid;
    readonly vaultId: VaultId;
    readonly amount: bigint;
  };
  /**
   * All of the signed transfers move nothing and their vaults are free again, or L1 does not count
   * some of them.
   */
  readonly "transfer.failed": { readonly transferId: Uuid; readonly failure: string };
  /** A vault that L1 made is final, and is the user's. */
  readonly "deposit.credited": DepositEventData;
  readonly "order.created": OrderEventData;
  /** Somebody has taken it. Told of both orders, the older one first. */
  readonly "order.filled": OrderEventData;
  /** A transaction that settles it was sent; repeated for each replacement. */
  readonly "order.submitted": OrderEventData;
  /** L1 refuses to settle it now; it is tried again. */
  readonly "order.attempt_refused": OrderEventData;
  /** L1 has settled it, in a final block. */
  readonly "order.settled": OrderEventData;
  /** The order that took it cannot be settled, so it is open again. */
  readonly "order.reopened": OrderEventData;
  readonly "order.cancelled": OrderEventData;
  /** Its vault is no longer as its maker has signed. */
  readonly "order.stale": OrderEventData;
  readonly "order.expired": OrderEventData;
  /**
   * Deliveries of a webhook have failed for so long that they stopped until it is enabled again.
   */
  readonly "webhook.disabled": { readonly webhookId: Uuid; readonly failure: string };
}

/** A type of event. */
export type EventType = keyof EventData;

/** Every event of a withdrawal, in the order of its life. */
export const WITHDRAWAL_EVENTS = [
  "withdrawal.accepted",
  "withdrawal.submitted",
  "withdrawal.attempt_refused",
  "withdrawal.settled",
  "withdrawal.finalized",
  "withdrawal.failed",
  "withdrawal.reverted",
] as const satisfies readonly EventType[];

/** Every event of an order, in the order of its life. */
export const ORDER_EVENTS = [
  "order.created",
  "order.filled",
  "order.submitted",
  "order.attempt_refused",
  "order.settled",
  "order.reopened",
  "order.cancelled",
  "order.stale",
  "order.expired",
] as const satisfies readonly EventType[];

/** One event of an application. It never changes. */
export type ApplicationEvent = {
  readonly [T in EventType]: {
    /** 1, 2, 3 … within the application, consecutive. */
    readonly sequence: number;
    readonly type: T;
    /** Milliseconds since 1970; at least the previous event's. */
    readonly createdAt: number;
    readonly data: EventData[T];
  };
}[EventType];
