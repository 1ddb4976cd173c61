import { MintmarkError } from "../errors.ts";
import type { EngineContext } from "../ledger/context.ts";
import type { Ledger } from "../ledger/ledger.ts";
import type { List, PageEntries, PageOptions, PageStart } from "../ledger/list.ts";
import { firstWhere, listOf, tablePage } from "../ledger/list.ts";
import { openBatchRecord } from "../ledger/open-batch.ts";
import { type Batch, batchIdOf, MODES, type Mode } from "../model.ts";
import type { BatchHeader, StoredBatch } from "../ports.ts";
import { stateCommitment } from "../protocol/commitment.ts";
import { bytesToHex } from "../protocol/hex.ts";
import { kindOf, manifestRoot, batchRoot as rootOf } from "../protocol/manifest.ts";
import type { EngineState } from "../protocol/proof.ts";
import type { Group } from "../store/group.ts";
import type { BatchRecord } from "../store/records.ts";
import { keyOf } from "../store/store-keys.ts";
import { requireMode } from "../validate.ts";
import { present } from "../vaults/vaults.ts";

export function batchView(record: BatchRecord): Batch {
  const { openedAt, sealedAt, submittedAt, settledAt, finalizedAt, inBlobs, transfers, ...facts } =
    record;
  const later = {
    sealed: sealedAt,
    submitted: submittedAt,
    settled: settledAt,
    finalized: finalizedAt,
  };
  return {
    ...facts,
    kind: kindOf(record.mode, inBlobs, transfers),
    vaultCount: record.vaultCount,
    assets: record.assets ?? [],
    batchId: batchIdOf(record.mode, record.batchNumber),
    timestamps: { open: openedAt, ...present(later) },
  };
}

/**
 * A batch in the readers' view. The open batch exists before its first mint. Throws
 * `batch_not_found`.
 */
export function findBatch(ledger: Ledger, mode: Mode, batchNumber: number): BatchRecord {
  const batch = ledger.batches.records[mode].durable.get(batchNumber);
  if (batch === undefined) throw new MintmarkError("batch_not_found");
  return batch;
}

/** The number of sealed batches of a mode, in the readers' view. */
export function sealedCount(ledger: Ledger, mode: Mode): number {
  const { durable: batches } = ledger.batches.records[mode];
  let count = batches.size;
  while (batches.get(count - 1)?.status === "open") count--;
  return count;
}

/** The open batch of a mode; empty before the first mint. */
function openBatch(ledger: Ledger, mode: Mode): Batch {
  const { durable: batches } = ledger.batches.records[mode];
  const newest = batches.get(batches.size - 1);
  if (newest?.status === "open") {
    // Other batches without a seal are closed.
    const first = batches.get(ledger.batches.unsealed.openNumber(mode));
    return batchView(first?.status === "open" ? first : newest);
  }
  const number = batches.size;
  const openedAt =
    number === 0 ? ledger.journal.head.durable.time : (batches.get(number - 1)?.sealedAt ?? 0);
  const nothing = { vaults: { count: 0 }, mintCount: 0, transfers: null };
  const empty = { mode, batchNumber: number, since: openedAt, ...nothing };
  return batchView(openBatchRecord(empty));
}

/**
 * Newest first: by number for one mode, by number and then mode for both. Reads no batch before the
 * page.
 */
function batchPage(
  ledger: Ledger,
  { mode: of }: BatchFilter,
  start: PageStart,
): PageEntries<Batch> {
  const modes = of === undefined ? MODES : [of];
  const size =
    Math.max(...modes.map((mode) => ledger.batches.records[mode].durable.size)) * MODES.length;
  const get = (at: number) => {
    const mode = MODES[at % MODES.length]!;
    return modes.includes(mode)
      ? ledger.batches.records[mode].durable.get(Math.floor(at / MODES.length))
      : undefined;
  };
  return tablePage(
    { size, get },
    { ...start, after: Math.min(start.after ?? size, size) },
    batchView,
    "desc",
  );
}

export function stateOver(ledger: Ledger, countValidium: number, countRollup: number): EngineState {
  const rootValidium = bytesToHex(ledger.batches.histories.validium.durable.root(countValidium));
  const rootRollup = bytesToHex(ledger.batches.histories["zk-rollup"].durable.root(countRollup));
  const roots = { countValidium, countRollup, rootValidium, rootRollup };
  return { ...roots, commitment: stateCommitment(ledger.services.settlement, roots) };
}

/** The committed batches of a mode are its first ones, so bisection finds their number. */
export function committedCount(ledger: Ledger, mode: Mode, group: Group | null): number {
  const batches = ledger.batches.records[mode].view(group);
  return firstWhere(batches.size, (number) => !isCommitted(batches.get(number)));
}

/** All vaults of a mode in the readers' view, with void slots and open batches. */
function vaultsIn({ batches }: Ledger, mode: Mode): number {
  const { durable } = batches.records[mode];
  const count = durable.size;
  // The vaults before the open batch are known as one number; those from it on are counted.
  const first = Math.min(Math.max(0, count - 1), batches.unsealed.openNumber(mode));
  let vaults = batches.refs.firstOrdinalOf(mode, first);
  for (let number = first; number < count; number++) vaults += durable.get(number)?.vaultCount ?? 0;
  return vaults;
}

function uncommittedVaults(ledger: Ledger): number {
  return MODES.reduce(
    (sum, mode) => sum + vaultsIn(ledger, mode) - committedVaults(ledger, mode, null),
    0,
  );
}

export function committedVaults(ledger: Ledger, mode: Mode, group: Group | null): number {
  return ledger.batches.refs.firstOrdinalOf(mode, committedCount(ledger, mode, group));
}

/** A part of a sealed batch is missing or does not fit its roots. */
export function corruptBatch(mode: Mode, batchNumber: number, what: string): MintmarkError {
  return new MintmarkError(
    "store_corrupt",
    `The ${what} of ${batchIdOf(mode, batchNumber)} are missing or damaged.`,
  );
}

/** A sealed batch in the writer's view. Throws `batch_not_found`, `proof_not_ready`. */
export function latestBatch(
  ledger: Ledger,
  group: Group,
  mode: Mode,
  batchNumber: number,
): BatchRecord {
  const batch = ledger.batches.records[requireMode(mode)].view(group).get(batchNumber);
  if (batch === undefined) throw new MintmarkError("batch_not_found");
  if (batch.status === "open")
    throw new MintmarkError("proof_not_ready", "The batch is still open.");
  return batch;
}

/**
 * A sealed batch that L1 can still replace, in the writer's view. Throws `batch_not_found`,
 * `proof_not_ready`, `batch_committed`.
 */
export function latestUncommitted(
  ledger: Ledger,
  group: Group,
  mode: Mode,
  batchNumber: number,
): BatchRecord {
  const batch = latestBatch(ledger, group, mode, batchNumber);
  if (isCommitted(batch)) throw new MintmarkError("batch_committed");
  return batch;
}

export function isCommitted(batch: BatchRecord | undefined): boolean {
  return batch?.status === "settled" || batch?.status === "finalized";
}

/** Filter of a list of batches. */
export interface BatchFilter extends PageOptions {
  readonly mode?: Mode | undefined;
}

export function batchesOf(context: EngineContext): Batches {
  return {
    async get(mode, batchNumber) {
      const open = openBatch(context.ledger, requireMode(mode));
      return open.batchNumber === batchNumber
        ? open
        : batchView(findBatch(context.ledger, mode, batchNumber));
    },
    list: (filter = {}) =>
      listOf(context, "batches", "", filter, (start, ledger) => batchPage(ledger, filter, start)),
    getOpen: (mode) => openBatch(context.ledger, requireMode(mode)),
    async getSealed(mode, batchNumber) {
      const { ledger } = context;
      const batch = findBatch(ledger, requireMode(mode), batchNumber);
      const { assets, content, batchRoot, dataHash, inBlobs, transfers } = batch;
      if (assets === null || content === null || batchRoot === null || dataHash === null)
        throw new MintmarkError("proof_not_ready", "The batch is still open.");
      const data = await ledger.store.get(keyOf.batchData(mode, batchNumber));
      if (data === undefined) throw corruptBatch(mode, batchNumber, "data");
      const whole = rootOf(kindOf(mode, inBlobs, transfers), manifestRoot(assets), content);
      const roots = { batchRoot: whole, rootOnL1: batchRoot };
      return {
        mode,
        batchNumber,
        vaultCount: batch.vaultCount,
        assets,
        content,
        ...roots,
        dataHash,
        data,
      };
    },
    state() {
      const { ledger } = context;
      return stateOver(ledger, sealedCount(ledger, "validium"), sealedCount(ledger, "zk-rollup"));
    },
    async committedState() {
      const { ledger } = context;
      return stateOver(
        ledger,
        committedCount(ledger, "validium", null),
        committedCount(ledger, "zk-rollup", null),
      );
    },
    uncommittedVaults: () => uncommittedVaults(context.ledger),
    placesLeft(mode) {
      const { ledger } = context;
      return Math.max(0, ledger.services.limits.places - vaultsIn(ledger, requireMode(mode)));
    },
  };
}

/**
 * Batches and the state over them. Public, without tenants.
 *
 * @example
 * const { data } = await engine.batches.getSealed("zk-rollup", 0);
 */
export interface Batches {
  /** Rejects with `batch_not_found`. */
  get(mode: Mode, batchNumber: number): Promise<Batch>;
  /** Newest first; both modes when none is named. */
  list(filter?: BatchFilter): List<Batch>;
  /** The batch that takes the mode's mints; empty before the first. */
  getOpen(mode: Mode): Batch;
  /**
   * A sealed batch with its public data. Rejects with `batch_not_found`, `proof_not_ready` for an
   * open one.
   */
  getSealed(mode: Mode, batchNumber: number): Promise<StoredBatch>;
  /** The state over all sealed batches. */
  state(): EngineState;
  /** The state over the committed batches. */
  committedState(): Promise<EngineState>;
  /** Uncommitted vaults, those of open batches included. `limits.uncommittedVaults` bounds them. */
  uncommittedVaults(): number;
  /** Vaults of the mode that the store still has places for. `limits.places` has all places. */
  placesLeft(mode: Mode): number;
}

/** L1's record of a committed batch; null before the commit. */
export function headerOf(batch: BatchRecord): BatchHeader | null {
  const { batchRoot, committedAt, l1Sequence } = batch;
  if (batchRoot === null || committedAt === null || l1Sequence === null) return null;
  return { batchRoot, vaultCount: batch.vaultCount, committedAt, sequence: l1Sequence };
}
