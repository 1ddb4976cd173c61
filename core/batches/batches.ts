import { MintmarkError } from "../errors.ts";
import { type Cursors, pageLimit, scopeOf } from "../ledger/cursor.ts";
import type { Ledger } from "../ledger/ledger.ts";
import { openBatchRecord } from "../ledger/open-batch.ts";
import type { BatchFilter } from "../list-types.ts";
import { type Batch, batchIdOf, MODES, type Mode, type Page, type VaultId } from "../model.ts";
import type { SealedBatch, VaultContent } from "../ports.ts";
import type { EngineState } from "../proof-types.ts";
import { stateCommitment } from "../protocol/commitment.ts";
import { bytesToHex } from "../protocol/hex.ts";
import { contentOf } from "../sealing/contents.ts";
import { requireNotVoid, slotCountOf } from "../sealing/void-runs.ts";
import type { BatchRecord } from "../store/records.ts";
import { batchDataKey } from "../store/store-keys.ts";
import { placeOf, readVault } from "../vaults/vaults.ts";

export function batchView(record: BatchRecord): Batch {
  const { openedAt, sealedAt, submittedAt, settledAt, finalizedAt, ...facts } = record;
  return {
    ...facts,
    vaultCount: slotCountOf(record),
    batchId: batchIdOf(record.mode, record.batchNumber),
    timestamps: {
      open: openedAt,
      ...(sealedAt !== null && { sealed: sealedAt }),
      ...(submittedAt !== null && { submitted: submittedAt }),
      ...(settledAt !== null && { settled: settledAt }),
      ...(finalizedAt !== null && { finalized: finalizedAt }),
    },
  };
}

/** A batch as readers see it, the open one included even before its first mint. Throws `batch_not_found`. */
export function findBatch(ledger: Ledger, mode: Mode, batchNumber: number): BatchRecord {
  const batch = ledger.batches[mode].get(batchNumber);
  if (batch === undefined) throw new MintmarkError("batch_not_found");
  return batch;
}

/** The number of batches of a mode that are sealed, as readers see it. */
export function sealedCount(ledger: Ledger, mode: Mode): number {
  const batches = ledger.batches[mode];
  let count = batches.count;
  while (batches.get(count - 1)?.status === "open") count--;
  return count;
}

/** The mode's batch that takes mints; with nothing in it before the first one. */
export function openBatch(ledger: Ledger, mode: Mode): Batch {
  const batches = ledger.batches[mode];
  const newest = batches.get(batches.count - 1);
  // Batches before it that have no seal yet are closed.
  if (newest?.status === "open") return batchView(newest);
  const number = batches.count;
  const openedAt = number === 0 ? ledger.durableHead.time : (ledger.batches[mode].get(number - 1)?.sealedAt ?? 0);
  const empty = { mode, batchNumber: number, vaultCount: 0, mintCount: 0, since: openedAt };
  return batchView(openBatchRecord(empty));
}

/** Newest first: by number of one mode, or both modes' by the time they were opened. */
export function listBatches(ledger: Ledger, cursors: Cursors, filter: BatchFilter): Page<Batch> {
  const limit = pageLimit(filter.limit);
  const scope = scopeOf("batches", "", filter);
  const modes = filter.mode === undefined ? MODES : [filter.mode];
  const all = modes
    .flatMap((mode) => [...ledger.batches[mode].values()])
    .map((batch) => ({ batch, at: positionOf(batch) }));
  all.sort((a, b) => b.at - a.at);
  const before = cursors.read(filter.cursor, scope);
  const rest = before === null ? all : all.filter(({ at }) => at < before);
  const page = rest.slice(0, limit);
  const last = page.at(-1);
  const hasMore = rest.length > limit;
  const nextCursor = hasMore && last ? cursors.issue(last.at, scope) : null;
  return { data: page.map(({ batch }) => batchView(batch)), nextCursor, hasMore, limit };
}

/** Orders batches of both modes: number first, then mode, so that a batch keeps its position for ever. */
function positionOf({ mode, batchNumber }: BatchRecord): number {
  return 2 * batchNumber + MODES.indexOf(mode);
}

export async function sealedBatch(ledger: Ledger, mode: Mode, batchNumber: number): Promise<SealedBatch> {
  const batch = findBatch(ledger, mode, batchNumber);
  const { batchRoot, dataHash } = batch;
  if (batchRoot === null || dataHash === null) throw new MintmarkError("proof_not_ready", "The batch is still open.");
  const data = await ledger.store.get(batchDataKey(mode, batchNumber));
  if (data === undefined) throw corruptBatch(mode, batchNumber, "data");
  return { mode, batchNumber, vaultCount: slotCountOf(batch), batchRoot, dataHash, data };
}

export async function vaultContent(ledger: Ledger, vaultId: VaultId): Promise<VaultContent> {
  const place = placeOf(vaultId);
  const vault = await readVault(ledger, place);
  requireNotVoid(ledger.voids, place);
  return contentOf(place, vault, ledger.assetAt(vault.assetIndex));
}

/** The state over the first batches of each mode. */
export function stateOver(ledger: Ledger, countValidium: number, countRollup: number): EngineState {
  const rootValidium = bytesToHex(ledger.histories.of("validium").root(countValidium));
  const rootRollup = bytesToHex(ledger.histories.of("zk-rollup").root(countRollup));
  const roots = { countValidium, countRollup, rootValidium, rootRollup };
  return { ...roots, commitment: stateCommitment(ledger.settlement, roots) };
}

/** The number of a mode's batches that L1 has committed: they are the first ones. */
export function committedCount(ledger: Ledger, mode: Mode): number {
  let count = 0;
  for (const { status } of ledger.batches[mode].values()) {
    if (status === "settled" || status === "finalized") count++;
  }
  return count;
}

/** Something of a sealed batch is not there, or not what its roots say. */
export function corruptBatch(mode: Mode, batchNumber: number, what: string): MintmarkError {
  return new MintmarkError("store_corrupt", `The ${what} of ${batchIdOf(mode, batchNumber)} are missing or damaged.`);
}

/** A sealed batch as the writer has it. Throws `batch_not_found`, `proof_not_ready`. */
export function latestBatch(ledger: Ledger, mode: Mode, batchNumber: number): BatchRecord {
  const batch = ledger.batches[mode].latest(batchNumber);
  if (batch === undefined) throw new MintmarkError("batch_not_found");
  if (batch.status === "open") throw new MintmarkError("proof_not_ready", "The batch is still open.");
  return batch;
}
