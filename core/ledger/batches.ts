import type { BatchFilter, EngineState, VaultProof } from "../engine-types.ts";
import { MintmarkError } from "../errors.ts";
import { type Batch, MODES, type Mode, type Page, type VaultId } from "../model.ts";
import type { BatchHeader, SealedBatch, VaultContent } from "../ports.ts";
import { PagedBatchTree, pageOf } from "../protocol/batch-tree.ts";
import { stateCommitment } from "../protocol/commitment.ts";
import { bytesToHex, hashAt, unpackHashes } from "../protocol/hex.ts";
import type { BatchRecord } from "../store/records.ts";
import { batchDataKey, pageRootsKey } from "../store/store-keys.ts";
import { type Cursors, pageLimit, scopeOf } from "./cursor.ts";
import { type Ledger, openBatchRecord } from "./ledger.ts";
import { contentOf } from "./seal.ts";
import { columnLeaves } from "./seal-columns.ts";
import { batchAt, batchIdOf, decodePage, pageKeys, placeOf, readVault } from "./vaults.ts";
import { clearVoidLeaves, requireNotVoid, slotCountOf } from "./void-runs.ts";

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
  if (data === undefined) throw corrupt(mode, batchNumber, "data");
  return { mode, batchNumber, vaultCount: slotCountOf(batch), batchRoot, dataHash, data };
}

export async function vaultContent(ledger: Ledger, vaultId: VaultId): Promise<VaultContent> {
  const place = placeOf(vaultId);
  const vault = await readVault(ledger, place);
  requireNotVoid(ledger.voids, place);
  return contentOf(place, vault, ledger.assetAt(vault.assetIndex));
}

/** Proves a vault from the records of its page and the roots of the others. Throws `vault_not_found`, `proof_not_ready`. */
export async function vaultProof(ledger: Ledger, vaultId: VaultId): Promise<VaultProof> {
  const place = placeOf(vaultId);
  const { mode, batchNumber, slot } = place;
  const batch = batchAt(ledger, place);
  const { batchRoot, vaultCount } = batch;
  if (batchRoot === null) throw new MintmarkError("proof_not_ready", "The vault's batch is not sealed yet.");
  const voids = requireNotVoid(ledger.voids, place);
  const { firstSlot, leafCount } = pageOf(vaultCount, slot);
  const keys = pageKeys(mode, batchNumber, firstSlot, leafCount);
  const [pageRoots, ...records] = await ledger.store.getMany([pageRootsKey(mode, batchNumber), ...keys]);
  if (pageRoots === undefined) throw corrupt(mode, batchNumber, "page roots");
  const page = decodePage(records, leafCount, batchIdOf(mode, batchNumber));
  const tree = new PagedBatchTree(vaultCount, pageRoots);
  if (bytesToHex(tree.root) !== batchRoot) throw corrupt(mode, batchNumber, "page roots");
  const leaves = columnLeaves(mode, batchNumber, page, (index) => ledger.assetAt(index), firstSlot);
  clearVoidLeaves(leaves, voids, firstSlot);
  const stored = page.at(slot - firstSlot);
  const vault = contentOf(place, stored, ledger.assetAt(stored.assetIndex));
  // The tree checks the path against its root before it hands it out.
  const siblings = unpackHashes(tree.siblings(slot, leaves));
  const leaf = bytesToHex(hashAt(leaves, slot - firstSlot));
  return { vault, vaultCount, batchRoot, leaf, siblings, header: headerOf(batch) };
}

/** What L1 keeps of a committed batch; null before. */
export function headerOf(batch: BatchRecord): BatchHeader | null {
  const { batchRoot, committedAt, l1Sequence } = batch;
  if (batchRoot === null || committedAt === null || l1Sequence === null) return null;
  return { batchRoot, vaultCount: slotCountOf(batch), committedAt, sequence: l1Sequence };
}

/** The state over the first batches of each mode. */
export function stateOver(ledger: Ledger, countValidium: number, countRollup: number): EngineState {
  const rootValidium = bytesToHex(ledger.history("validium").root(countValidium));
  const rootRollup = bytesToHex(ledger.history("zk-rollup").root(countRollup));
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

function corrupt(mode: Mode, batchNumber: number, what: string): MintmarkError {
  return new MintmarkError("store_corrupt", `The ${what} of ${batchIdOf(mode, batchNumber)} are missing or damaged.`);
}
