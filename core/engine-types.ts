import type { AbstractLevel } from "abstract-level";
import type { ApplicationEvent, EventOptions } from "./event-types.ts";
import type {
  AssetFilter,
  Balance,
  BatchFilter,
  List,
  PageOptions,
  TransactionFilter,
  VaultFilter,
  WithdrawalFilter,
} from "./list-types.ts";
import type {
  Address,
  ApiKey,
  Application,
  Asset,
  Batch,
  BlobScheme,
  Environment,
  Hash,
  Hex,
  Mode,
  Principal,
  Scope,
  Standard,
  Status,
  Transaction,
  User,
  Uuid,
  Vault,
  VaultId,
  Withdrawal,
} from "./model.ts";
import type {
  Clock,
  L1Event,
  L1Reader,
  ReceiptSigner,
  SealedBatch,
  Settlement,
  VaultContent,
  WithdrawalCall,
} from "./ports.ts";
import type { EngineState, Proofs } from "./proof-types.ts";
import type { MintReceipt } from "./protocol/receipt.ts";
import type { Webhooks } from "./webhook-types.ts";

/** Bounds of one request and of one batch. A batch is sealed by itself before it passes one of its bounds. */
export interface Limits {
  readonly usersPerRequest: number;
  readonly mintsPerRequest: number;
  /** Most vaults of a batch, 1 to 2^20, by mode. */
  readonly batchVaults: Readonly<Record<Mode, number>>;
  /** Most bytes of a rollup batch's encoded data; the transaction must stay below 128 KB. */
  readonly rollupBytes: number;
  /** Most gas that committing a rollup batch may take by the worst-case estimate. */
  readonly rollupGas: number;
}

/** An abstract-level database of any kind; the engine uses it with binary keys and values and closes it with itself. */
// biome-ignore lint/suspicious/noExplicitAny: abstract-level's first parameter is the implementation's private format.
export type Database = AbstractLevel<any, any, any>;

export interface EngineOptions {
  /** Folder of a LevelDB store (created when missing), or a database, e.g. `new MemoryLevel()`. */
  readonly store: string | Database;
  /** The contract this store's batches are committed to. A store never changes it. */
  readonly settlement: Settlement;
  readonly environment: Environment;
  readonly clock?: Clock;
  readonly limits?: Partial<Limits>;
  /** Signs receipts for mints. Without it there are none. */
  readonly receiptSigner?: ReceiptSigner;
  /** Checks wallet contracts' signatures (ERC-1271). Without it only plain accounts can sign withdrawals. */
  readonly verifySignature?: L1Reader["verifySignature"];
}

export interface NewKey {
  /** Default: all. */
  readonly scopes?: readonly Scope[];
  /** Milliseconds since 1970; default never. */
  readonly expiresAt?: number | null;
  /** Most mint entries the key may ever make; default no bound. */
  readonly mintQuota?: bigint | null;
}

export interface IssuedKey {
  readonly key: ApiKey;
  /** The whole token, `mm_test_<keyId>_<secret and checksum>`. Not stored: shown once. */
  readonly secret: string;
}

export interface NewAsset {
  readonly assetId?: Uuid;
  readonly standard: Standard;
  /** The token's chain; default the settlement's. */
  readonly chainId?: bigint;
  readonly contractAddress: Address;
  /** Base units of one unit here; 1 for ERC-721 and ERC-1155. Default 1. */
  readonly quantum?: bigint;
  readonly name: string;
  readonly symbol: string;
  /** Default 0. */
  readonly decimals?: number;
  /** Default `mintmark`. */
  readonly blobScheme?: BlobScheme;
  readonly supplyCap?: bigint | null;
}

export interface MintOptions {
  /** At most 255 printable ASCII characters. */
  readonly idempotencyKey?: string;
  /** Gives up waiting for a place in the queue. Once the mint is being written it is not undone: repeat with the idempotency key. */
  readonly signal?: AbortSignal;
}

export interface MintTransaction {
  readonly transactionId: string;
  /** Position in the request: `/users/<userIndex>/mints/<mintIndex>`. */
  readonly userIndex: number;
  readonly mintIndex: number;
  readonly vaultId: VaultId;
  readonly status: Status;
}

export interface MintResult {
  readonly mintId: Uuid;
  /** Every vault that the request touched, once, as it stood after it; in order of first touch. */
  readonly vaults: readonly Vault[];
  /** One per entry, in request order. */
  readonly transactions: readonly MintTransaction[];
  /** Whether an earlier request of the same idempotency key gave this answer. */
  readonly replayed: boolean;
  /**
   * The operator's signed receipt for the vaults as they were acknowledged, the same each time; null without a `receiptSigner`. Signed
   * when it is asked for, one signature a call; a mint that nobody asks for its receipt costs nothing more. Rejects as the signer does.
   */
  receipt(): Promise<MintReceipt | null>;
}

export interface WithdrawalRequest {
  readonly vaultId: VaultId;
  readonly quantity: bigint;
  /** Default: the owner. */
  readonly recipient?: Address;
  /** Seconds since 1970, as signed. */
  readonly deadline: bigint;
  /** The owner's EIP-712 `Withdrawal` message; `withdrawnBefore` is the vault's `withdrawnBalance`. */
  readonly signature: Hex;
}

/** Consecutive slots of a batch, and why L1 refuses them. */
export interface VoidSlots {
  readonly firstSlot: number;
  readonly count: number;
  /** 1 to 2000 characters; the application reads it. */
  readonly failure: string;
}

/** What happened, told after it is durable and in the order of the journal. */
export interface EngineEvents {
  readonly mint: { readonly applicationId: Uuid; readonly mintId: Uuid; readonly mints: number };
  readonly batchSealed: Batch;
  /** Slots became void: L1 refuses them. */
  readonly slotsVoided: { readonly batch: Batch; readonly slots: readonly VoidSlots[] };
  readonly batchSubmitted: Batch;
  readonly batchCommitted: Batch;
  readonly batchFinalized: Batch;
  /** A reorganisation took the batch back from settled to submitted. */
  readonly batchReverted: Batch;
  /** A key of the application was revoked, or the application was suspended or let in again. */
  readonly access: { readonly applicationId: Uuid };
  /** A webhook was made, deleted, disabled, enabled again, or got a new secret. */
  readonly webhook: { readonly webhookId: Uuid };
  /** A withdrawal was accepted or changed its status. */
  readonly withdrawal: { readonly applicationId: Uuid; readonly withdrawal: Withdrawal };
}

/** What `verify` found. `problems` is empty when every record is what the journal says. */
export interface VerifyReport {
  readonly journalEntries: number;
  readonly vaults: number;
  readonly batches: number;
  readonly mints: number;
  readonly tokens: number;
  readonly state: EngineState;
  /** At most 100; each names the record. */
  readonly problems: readonly string[];
}

/** A withdrawal that can be sent to L1 once its vault has matured. */
export interface PendingWithdrawal {
  readonly withdrawal: Withdrawal;
  readonly standard: Standard;
  readonly call: WithdrawalCall;
}

/**
 * The minting engine over one store. Every method that changes something resolves when the change is on disk; reads see only what is
 * on disk. Every method rejects with `MintmarkError`; after a failed write each one rejects with `store_failed`, after `close` with
 * `engine_closed`.
 */
export interface Engine extends AsyncDisposable, Proofs {
  readonly settlement: Settlement;
  readonly environment: Environment;
  readonly limits: Limits;
  /** Finishes what is queued, then closes the store. Idempotent. */
  close(): Promise<void>;

  // Operator: tenants, keys, assets.
  createApplication(application: { readonly applicationId?: Uuid; readonly name: string }): Promise<Application>;
  application(applicationId: Uuid): Promise<Application>;
  applications(): AsyncIterable<Application>;
  suspendApplication(applicationId: Uuid, suspended: boolean): Promise<Application>;
  issueKey(applicationId: Uuid, key?: NewKey): Promise<IssuedKey>;
  keys(applicationId: Uuid): AsyncIterable<ApiKey>;
  revokeKey(keyId: string): Promise<ApiKey>;
  /** Makes a token known. It is minted only once whitelisted, registered and enabled. */
  addAsset(asset: NewAsset): Promise<Asset>;
  /** Every known asset, `enabled` false. */
  allAssets(): AsyncIterable<Asset>;
  whitelistAsset(assetId: Uuid, whitelisted: boolean): Promise<Asset>;
  /**
   * What the settlement layer found: why L1 would refuse to mint of the asset, or null when it would not. With a fault nothing of it is
   * minted (`mint_unwithdrawable`), and `unavailableReason` tells it.
   */
  setMintingFault(assetId: Uuid, fault: string | null): Promise<Asset>;
  /** The settlement layer read the asset in L1's registry. */
  markAssetRegistered(assetId: Uuid, facts?: { readonly minterLocked?: boolean | null }): Promise<Asset>;

  // Callers.
  authenticate(token: string): Promise<Principal>;
  /** Idempotent for the same id and address; another address for a known id is `user_exists`. */
  createUser(applicationId: Uuid, user: { readonly userId?: Uuid; readonly ownerAddress: Address }): Promise<User>;
  user(applicationId: Uuid, userId: Uuid): Promise<User>;
  users(applicationId: Uuid, page?: PageOptions): List<User>;
  enableAsset(applicationId: Uuid, assetId: Uuid): Promise<Asset>;
  disableAsset(applicationId: Uuid, assetId: Uuid): Promise<Asset>;
  asset(applicationId: Uuid, assetId: Uuid): Promise<Asset>;
  assets(applicationId: Uuid, filter?: AssetFilter): List<Asset>;
  /**
   * Mints everything in the request or nothing. `request` is the parsed body of the HTTP API, untrusted:
   * `{users: [{userId, mints: [{mintingBlob, assetId, amount, dataAvailabilityMode}]}]}`.
   *
   * Rejects with every bad entry in `issues`, in request order; the error's own code is that of the first of them.
   */
  mint(principal: Principal, request: unknown, options?: MintOptions): Promise<MintResult>;
  /** Everything `mint` checks, at this moment, without minting: rejects as `mint` would. */
  checkMint(principal: Principal, request: unknown): Promise<{ readonly users: number; readonly mints: number }>;
  /**
   * Forgets the idempotency keys of mints that were made before a time (ms since 1970), so that the store does not keep them for ever;
   * the mints stay. Whoever repeats one of these requests then mints anew: leave callers the time that they were promised. Resolves
   * with the number of keys; mints go on meanwhile. An aborted `signal` stops it between two steps.
   */
  forgetIdempotencyKeys(before: number, options?: { readonly signal?: AbortSignal }): Promise<number>;
  mintResult(applicationId: Uuid, mintId: Uuid): Promise<MintResult>;
  transaction(applicationId: Uuid, transactionId: string): Promise<Transaction>;
  /** A page can be shorter than `limit` and yet have a next one: the work of one page is bounded, however rare its matches. */
  transactions(applicationId: Uuid, filter?: TransactionFilter): List<Transaction>;
  vault(applicationId: Uuid, vaultId: VaultId): Promise<Vault>;
  /** In the order in which they were made; shorter pages as with `transactions`. */
  vaults(applicationId: Uuid, filter?: VaultFilter): List<Vault>;
  /**
   * What a user holds, by token: ERC-721 tokens in the order of their mints, then sums over vaults of the other standards. However many
   * vaults there are, no more than the sums and a few of the vaults are in memory.
   */
  balances(applicationId: Uuid, userId: Uuid): AsyncIterable<Balance>;
  /** Checks the owner's signature and reserves the quantity. One withdrawal of a vault at a time. */
  requestWithdrawal(principal: Principal, request: WithdrawalRequest): Promise<Withdrawal>;
  withdrawal(applicationId: Uuid, withdrawalId: Uuid): Promise<Withdrawal>;
  /** Newest first; shorter pages as with `transactions`. */
  withdrawals(applicationId: Uuid, filter?: WithdrawalFilter): List<Withdrawal>;

  // Batches and proofs: public, without tenants.
  /** Closes the mode's open batch; null when it is empty. */
  seal(mode: Mode): Promise<Batch | null>;
  /**
   * Makes slots of a sealed batch void that L1 refuses, so that the batch can be committed without them: their mints have failed, with
   * these reasons. Rejects with `batch_committed` once L1 has the batch. The caller answers for it that nothing sent earlier can
   * still commit the batch as it was; the settlement layer makes sure of that.
   */
  voidSlots(mode: Mode, batchNumber: number, slots: readonly VoidSlots[]): Promise<Batch>;
  openBatch(mode: Mode): Batch;
  batch(mode: Mode, batchNumber: number): Promise<Batch>;
  /** Newest first; of both modes when none is named. */
  batches(filter?: BatchFilter): List<Batch>;
  sealedBatch(mode: Mode, batchNumber: number): Promise<SealedBatch>;
  vaultContent(vaultId: VaultId): Promise<VaultContent>;
  /** Over all sealed batches. */
  state(): EngineState;
  /** Over the batches that L1 has committed. */
  committedState(): Promise<EngineState>;

  // What the settlement layer saw; each call is one atomic, journaled transition, and repeating it changes nothing.
  /** Last block whose events are applied; null before the first. */
  settlementCursor(): bigint | null;
  /** Last block that was recorded as final; null before the first. */
  settlementFinalized(): bigint | null;
  recordSubmitted(mode: Mode, batchNumber: number, txHash: Hash): Promise<Batch>;
  /** Applies all events of the blocks after the cursor up to `toBlock`, in order, and moves the cursor: all or nothing. */
  recordEvents(events: readonly L1Event[], toBlock: bigint): Promise<void>;
  /** One event of type `batchCommitted`, without moving the cursor. Root, count and data hash must be ours: else `l1_failed`. */
  recordCommitted(event: L1Event & { readonly type: "batchCommitted" }): Promise<Batch>;
  /** One event of type `withdrawn`, without moving the cursor; of owners who withdrew by themselves too. */
  recordWithdrawn(event: L1Event & { readonly type: "withdrawn" }): Promise<void>;
  /** Everything up to this block can no longer be reorganised away. */
  recordFinalized(blockNumber: bigint): Promise<void>;
  /** Blocks from this one on are gone: what they settled is submitted again, the cursor goes back before them. */
  recordReorg(blockNumber: bigint): Promise<void>;
  recordWithdrawalSubmitted(withdrawalId: Uuid, txHash: Hash): Promise<Withdrawal>;
  /** L1 refused an attempt; the authorization is still good, so the reservation stays and `failure` tells the reason. */
  recordWithdrawalAttempt(withdrawalId: Uuid, failure: string): Promise<Withdrawal>;
  /**
   * Gives up and releases the reservation. Refused with `withdrawal_pending` while the authorization could still be used: `l1Time`,
   * seconds of a finalized block, must be past its deadline, unless it was cancelled or overtaken on L1.
   */
  recordWithdrawalFailed(withdrawalId: Uuid, failure: string, l1Time: bigint): Promise<Withdrawal>;
  /** Withdrawals that are neither settled nor failed and whose batch L1 has committed, oldest first. */
  pendingWithdrawals(): AsyncIterable<PendingWithdrawal>;

  // Events and integrity.
  readonly webhooks: Webhooks;
  /**
   * What an application is told, in order, without gap or duplicate, however often the engine was closed or killed since. Throws
   * `application_not_found`, and `validation_failed` for an `after` beyond the newest event. One who waits with `follow` is ended by
   * `signal` or by closing the engine; until its next event nothing else ends it.
   */
  applicationEvents(applicationId: Uuid, options?: EventOptions): AsyncGenerator<ApplicationEvent, void, void>;
  /** Calls `listener` after each such thing is durable; returns the function that stops it. A listener that throws does not stop the engine. */
  on<K extends keyof EngineEvents>(type: K, listener: (event: EngineEvents[K]) => void): () => void;
  /** Re-derives everything from the journal by a second implementation and compares every record; finds any flipped byte. */
  verify(options?: {
    readonly signal?: AbortSignal;
    readonly onProgress?: (entries: number) => void;
  }): Promise<VerifyReport>;
}
