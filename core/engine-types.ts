import type { AbstractLevel } from "abstract-level";
import type { Batches, VoidSlots } from "./batch-types.ts";
import type { ApplicationEvent, EventOptions, EventType } from "./event-types.ts";
import type { Holdings } from "./holding-types.ts";
import type { Minting } from "./mint-types.ts";
import type { Batch, Environment, Mode, Uuid, Withdrawal } from "./model.ts";
import type { Clock, L1Reader, Settlement } from "./ports.ts";
import type { EngineState, Proofs } from "./proof-types.ts";
import type { ReceiptSigner } from "./protocol/receipt.ts";
import type { SettlementRecord } from "./settlement-types.ts";
import type { Journal, Store } from "./store-ports.ts";
import type { Tenants } from "./tenant-types.ts";
import type { Webhooks } from "./webhook-types.ts";

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
}

/** An abstract-level database of any kind; the engine uses it with binary keys and values and closes it with itself. */
// biome-ignore lint/suspicious/noExplicitAny: abstract-level's first parameter is the implementation's private format.
export type Database = AbstractLevel<any, any, any>;

export interface EngineOptions {
  /** Folder of a LevelDB store, a database, e.g. `new MemoryLevel()`, or a store of your own. */
  readonly store: string | Database | Store;
  /**
   * Creates a new store where there is none. Default false, which is `store_missing` there: a new store over the contract of a lost one
   * would mint its tokens again.
   */
  readonly createIfMissing?: boolean;
  /**
   * Gets every entry of the journal too: a change is acknowledged when it is in the store and then here. Opening the engine brings it up
   * to the store; one that is ahead of the store, or another's, is `store_mismatch`. `LevelJournal` is one
   * in a folder; `restoreStore` makes a store of any. The engine does not close it.
   */
  readonly journal?: Journal;
  /** The contract this store's batches are committed to. A store never changes it. */
  readonly settlement: Settlement;
  readonly environment: Environment;
  readonly clock?: Clock;
  /** Milliseconds of any origin that only grow; default `performance.now`, or `clock` when that is given. */
  readonly monotonic?: Clock;
  /**
   * How far the clock may be ahead of the journal, whose newest entry the engine finds at opening, in milliseconds. Past that, entries
   * get the journal's own time and {@link Engine.clockFault} says so. Default no bound.
   */
  readonly clockAheadMs?: number;
  readonly limits?: Partial<Limits>;
  /** Signs receipts for mints. Without it there are none. */
  readonly receiptSigner?: ReceiptSigner;
  /** Checks wallet contracts' signatures (ERC-1271) on a chain. Without it only plain accounts can sign withdrawals. */
  readonly verifySignature?: (
    chainId: bigint,
    ...signed: Parameters<L1Reader["verifySignature"]>
  ) => ReturnType<L1Reader["verifySignature"]>;
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
  readonly withdrawal: {
    readonly applicationId: Uuid;
    readonly type: Extract<EventType, `withdrawal.${string}`>;
    readonly withdrawal: Withdrawal;
  };
}

export interface VerifyOptions {
  /** Stops between two entries of the journal. */
  readonly signal?: AbortSignal | undefined;
  /** Called now and then with the number of journal entries read. */
  readonly onProgress?: (entries: number) => void;
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

/**
 * The minting engine over one store. Every method that changes something resolves when the change is on disk; reads see only what is
 * on disk. Every method rejects with `MintmarkError`; after a failed write each one rejects with `store_failed`, after `close` with
 * `engine_closed`.
 */
export interface Engine extends AsyncDisposable, Tenants, Minting, Holdings, Batches, Proofs, SettlementRecord {
  readonly settlement: Settlement;
  readonly environment: Environment;
  readonly limits: Limits;
  /** Aborted once nothing is taken any more: by `close`, or with the error of the store that has failed. */
  readonly ended: AbortSignal;
  /** What is wrong with the system's clock and what to do; null when it fits the journal. */
  clockFault(): string | null;
  /**
   * A time that has certainly been reached, in ms since 1970, however wrong the system's clock is. It stands behind the clock by the
   * time for which nothing ran. What must not expire too early is held against it.
   */
  reachedTime(): number;
  /** Finishes what is queued, then closes the store. Idempotent. */
  close(): Promise<void>;

  // Events and integrity.
  readonly webhooks: Webhooks;
  /**
   * What an application is told, in order, without gap or duplicate, however often the engine was closed or killed since. Throws
   * `application_not_found`, and `validation_failed` for an `after` beyond the newest event. One who waits with `follow` is ended by
   * `signal` or by closing the engine; until its next event nothing else ends it.
   */
  applicationEvents(applicationId: Uuid, options?: EventOptions): AsyncGenerator<ApplicationEvent, void, void>;
  /**
   * Calls `listener` after each such thing is durable; returns the function that stops it. What a listener throws does
   * not reach the engine: it is an unhandled rejection, which Node ends the process for unless it is listened to.
   */
  on<K extends keyof EngineEvents>(type: K, listener: (event: EngineEvents[K]) => void): () => void;
  /** Re-derives everything from the journal by a second implementation and compares every record; finds any flipped byte. */
  verify(options?: VerifyOptions): Promise<VerifyReport>;
}
