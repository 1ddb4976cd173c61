import type { Environment, Limits } from "../model.ts";
import { MAX_BATCH_VAULTS } from "../model.ts";
import type { Clock, L1Reader, Settlement } from "../ports.ts";
import { requireInteger } from "../protocol/bounds.ts";
import type { ReceiptSigner } from "../protocol/receipt.ts";
import type { Database, Journal, Store } from "../store/ports.ts";

/** What an engine is opened with. */
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

/** EIP-7825: the most gas of one transaction. */
const MAX_TRANSACTION_GAS = 16_777_216;
/** Nodes refuse transactions above this many bytes. */
const MAX_TRANSACTION_BYTES = 131_072;
/** Most vaults of a rollup batch that the settlement contract takes, whatever their gas. */
const MAX_ROLLUP_VAULTS = 1 << 15;
/** Signature, fees and calldata around a batch's data. */
const TRANSACTION_OVERHEAD = 1_024;

/** The limits of an engine that is given none. */
export const DEFAULT_LIMITS: Limits = {
  usersPerRequest: 100,
  mintsPerRequest: 10_000,
  batchVaults: { validium: 65_536, "zk-rollup": 4_096 },
  validiumBytes: 64 * 1024 * 1024,
  rollupBytes: 126_976,
  rollupGas: 16_000_000,
  uncommittedVaults: null,
};

/** The limits with the defaults for those not given. Throws `validation_failed` for one that L1 could not carry. */
export function readLimits(limits: Partial<Limits> = {}): Limits {
  const read = { ...DEFAULT_LIMITS, ...limits };
  requireInteger("usersPerRequest", read.usersPerRequest, 1, 1_000_000);
  requireInteger("mintsPerRequest", read.mintsPerRequest, 1, MAX_BATCH_VAULTS);
  requireInteger("batchVaults.validium", read.batchVaults.validium, 1, MAX_BATCH_VAULTS);
  requireInteger("batchVaults.zk-rollup", read.batchVaults["zk-rollup"], 1, MAX_ROLLUP_VAULTS);
  requireInteger("validiumBytes", read.validiumBytes, 1_024, 512 * 1024 * 1024);
  requireInteger("rollupBytes", read.rollupBytes, 1_024, MAX_TRANSACTION_BYTES - TRANSACTION_OVERHEAD);
  requireInteger("rollupGas", read.rollupGas, 500_000, MAX_TRANSACTION_GAS);
  if (read.uncommittedVaults !== null) {
    // Below the largest request, that request would never be taken.
    requireInteger("uncommittedVaults", read.uncommittedVaults, read.mintsPerRequest, Number.MAX_SAFE_INTEGER);
  }
  return read;
}
