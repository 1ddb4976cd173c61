import { TRANSACTION_GAS } from "../gas.ts";
import { type Environment, type Limits, MAX_BATCH_VAULTS } from "../model.ts";
import type { Clock, L1Reader, Settlement } from "../ports.ts";
import { MAX_BLOB_VAULTS } from "../protocol/blob-batch.ts";
import { requireInteger } from "../protocol/bounds.ts";
import type { Kzg } from "../protocol/kzg/kzg-thread.ts";
import type { ReceiptSigner } from "../protocol/receipt.ts";
import type { Database, Journal, Store } from "../store/ports.ts";
import { MAX_PLACES } from "./vault-refs.ts";

/** Options of an engine. */
export interface EngineOptions {
  /** Folder of a LevelDB store, a database such as `new MemoryLevel()`, or your own store. */
  readonly store: string | Database | Store;
  /**
   * Default false (`store_missing`): a new store over the contract of a lost one would mint its
   * tokens again.
   */
  readonly createIfMissing?: boolean;
  /**
   * Gets every journal entry too. A change is acknowledged when store and journal have it. Opening
   * the engine brings the journal up to the store. A journal that is ahead of the store, or belongs
   * to another one, is `store_mismatch`. `LevelJournal` keeps one in a folder; `restoreStore` makes
   * a store of a journal. The engine does not close it.
   */
  readonly journal?: Journal;
  /** The contract that this store's batches are committed to. It never changes. */
  readonly settlement: Settlement;
  readonly environment: Environment;
  readonly clock?: Clock;
  /**
   * A monotonic clock of any origin, in ms. Default `performance.now`, or `clock` when that is
   * given.
   */
  readonly monotonic?: Clock;
  /**
   * How far the clock may be ahead of the journal's newest entry, in ms. Beyond that, entries get
   * the journal's time, and {@link Engine.clockFault} says so. Default: no bound.
   */
  readonly clockAheadMs?: number;
  /**
   * How long L1 must contradict this store before it counts as diverged for good, in ms; default
   * 60,000. Meanwhile mints and withdrawals are refused.
   */
  readonly divergenceMs?: number;
  readonly limits?: Partial<Limits>;
  /** Signs receipts for mints. Without it there are no receipts. */
  readonly receiptSigner?: ReceiptSigner;
  /**
   * Commits to blobs and proves vaults in them. Default: a thread of the engine's own, started at
   * the first blob.
   */
  readonly kzg?: Kzg;
  /**
   * Checks wallet contracts' signatures (ERC-1271) on a chain. Without it only plain accounts can
   * sign withdrawals.
   */
  readonly verifySignature?: (
    chainId: bigint,
    ...signed: Parameters<L1Reader["verifySignature"]>
  ) => ReturnType<L1Reader["verifySignature"]>;
}

/** Nodes refuse transactions above this many bytes. */
const MAX_TRANSACTION_BYTES = 131_072;
/** Most vaults of a rollup batch that the settlement contract takes, whatever their gas. */
const MAX_ROLLUP_VAULTS = 1 << 15;
/** Signature, fees and calldata around a batch's data. */
const TRANSACTION_OVERHEAD = 1_024;

/** The default limits. */
export const DEFAULT_LIMITS: Limits = {
  usersPerRequest: 100,
  mintsPerRequest: 10_000,
  batchVaults: { validium: 65_536, "zk-rollup": MAX_ROLLUP_VAULTS },
  validiumBytes: 64 * 1024 * 1024,
  rollupBytes: 126_976,
  blobElements: MAX_BLOB_VAULTS,
  rollupGas: 16_000_000,
  uncommittedVaults: null,
  places: MAX_PLACES,
};

/**
 * The limits with defaults filled in. Throws `validation_failed` for a limit that L1 cannot carry.
 */
export function readLimits(limits: Partial<Limits> = {}): Limits {
  const read = { ...DEFAULT_LIMITS, ...limits };
  requireInteger("usersPerRequest", read.usersPerRequest, 1, 1_000_000);
  requireInteger("mintsPerRequest", read.mintsPerRequest, 1, MAX_BATCH_VAULTS);
  requireInteger("batchVaults.validium", read.batchVaults.validium, 1, MAX_BATCH_VAULTS);
  requireInteger("batchVaults.zk-rollup", read.batchVaults["zk-rollup"], 1, MAX_ROLLUP_VAULTS);
  requireInteger("validiumBytes", read.validiumBytes, 1_024, 512 * 1024 * 1024);
  requireInteger(
    "rollupBytes",
    read.rollupBytes,
    1_024,
    MAX_TRANSACTION_BYTES - TRANSACTION_OVERHEAD,
  );
  requireInteger("blobElements", read.blobElements, 1, MAX_BLOB_VAULTS);
  requireInteger("rollupGas", read.rollupGas, 500_000, Number(TRANSACTION_GAS));
  requireInteger("places", read.places, 1, MAX_PLACES);
  if (read.uncommittedVaults !== null) {
    // Below this, the largest request would always be refused.
    requireInteger(
      "uncommittedVaults",
      read.uncommittedVaults,
      read.mintsPerRequest,
      Number.MAX_SAFE_INTEGER,
    );
  }
  return read;
}
