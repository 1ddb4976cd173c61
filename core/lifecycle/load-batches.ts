import { MintmarkError } from "../errors.ts";
import {
  chunkRecords,
  readBatchVaults,
  recordsAgain,
  requireCount,
  tokenHashOf,
} from "../ledger/batch-vaults.ts";
import type { Ledger } from "../ledger/ledger.ts";
import type { OpenBatch } from "../ledger/open-batch.ts";
import { batchIdOf, type Mode } from "../model.ts";
import { batchRoot, kindOf, manifestRoot } from "../protocol/manifest.ts";
import { StateTree } from "../protocol/state-tree.ts";
import { pointsIn, stateLeafOf } from "../sealing/contents.ts";
import type { CompleteRecords, DerivedRecords } from "../sealing/derive-batch.ts";
import { deriveGiven, deriveTransfers, withCommitments } from "../sealing/derive-batch.ts";
import { leftOutPlaces } from "../sealing/void-runs.ts";
import type { BatchRecord } from "../store/records.ts";
import { keyOf } from "../store/store-keys.ts";
import { decodeIntoColumns, type VaultColumns } from "../store/vault-columns.ts";
import { listsOfBatch } from "../vaults/transfer-lists.ts";

/**
 * Reads a mode's batches: the state tree over the sealed ones, the vaults of the others. Returns
 * those to be sealed.
 */
export async function loadBatches(ledger: Ledger, mode: Mode): Promise<readonly OpenBatch[]> {
  const batches = ledger.batches.records[mode];
  const history = historyOf(ledger, mode);
  const unsealed: BatchRecord[] = [];
  for (let number = history.count; number < batches.durable.size; number++) {
    const batch = batches.durable.get(number);
    if (batch?.status !== "open")
      throw new MintmarkError("store_corrupt", `${batchIdOf(mode, number)} is missing.`);
    unsealed.push(batch);
  }
  ledger.batches.histories[mode].load(history);
  const newest = batches.durable.get(history.count - 1);
  if (newest !== undefined) await recheckBatch(ledger, newest);
  return loadUnsealed(ledger, mode, unsealed);
}

/** The state tree over a mode's sealed batches. */
export function historyOf(ledger: Ledger, mode: Mode): StateTree {
  const history = new StateTree();
  for (
    let batch = ledger.batches.records[mode].durable.get(0);
    batch !== undefined && batch.status !== "open";
  ) {
    history.append(stateLeafOf(batch));
    batch = ledger.batches.records[mode].durable.get(history.count);
  }
  return history;
}

/** The newest batch without a seal takes mints. Earlier ones were closed, and are returned. */
async function loadUnsealed(ledger: Ledger, mode: Mode, unsealed: readonly BatchRecord[]) {
  const sealed = ledger.batches.histories[mode].durable.count;
  let before = ledger.batches.refs.firstOrdinalOf(mode, sealed);
  const loaded: OpenBatch[] = [];
  for (const record of unsealed) {
    const batch = await loadUnsealedBatch(ledger, record, before);
    before += batch.vaults.count;
    loaded.push(batch);
  }
  // Transfers take no mints.
  if (unsealed.length === 0 || unsealed.at(-1)?.transfers)
    ledger.batches.open(mode, sealed + unsealed.length, before, ledger.journal.head.durable.time);
  else loaded.pop();
  return loaded;
}

/** An unsealed batch with its vaults, which takes mints until another is loaded. */
async function loadUnsealedBatch(ledger: Ledger, record: BatchRecord, firstOrdinal: number) {
  const { mode, batchNumber, openedAt } = record;
  const open = ledger.batches.open(mode, batchNumber, firstOrdinal, openedAt);
  if (record.transfers) open.transfers = await listsOfBatch(ledger, record);
  for await (const chunk of chunkRecords(ledger, record)) {
    const first = open.vaults.count;
    if (record.transfers) {
      // A transfer makes no token.
      decodeIntoColumns(chunk, open.vaults, () => 0);
      continue;
    }
    open.load(chunk, ledger.tenants.standards, (vault) => tokenHashOf(ledger, vault));
    for (let slot = first; slot < open.vaults.count; slot++) {
      if (ledger.tenants.standards[open.vaults.assetIndex[slot]!] !== "erc721") continue;
      ledger.minting.tokens.insert(
        open.vaults.tokenHash[slot]!,
        ledger.batches.refs.refOf(open, slot),
      );
    }
  }
  requireCount(record, open.vaults.count);
  open.mintCount = record.mintCount;
  return open;
}

/** The records of a sealed batch; of one in blobs, without the commitments. */
async function recordsOf(
  ledger: Ledger,
  batch: BatchRecord,
  vaults: VaultColumns,
  data: Uint8Array | undefined,
): Promise<CompleteRecords | DerivedRecords> {
  const { mode, batchNumber, assets, given, transfers } = batch;
  const assetAt = (index: number) => ledger.tenants.assetAt(index);
  const voids = ledger.batches.voids[mode].durable.get(batchNumber) ?? [];
  if (transfers)
    return deriveTransfers(batchNumber, await listsOfBatch(ledger, batch), vaults, assetAt);
  if (!given || data === undefined) return recordsAgain(ledger, batch, vaults, voids);
  return deriveGiven(batch, { data, assets: assets ?? [] }, vaults, assetAt, voids);
}

/**
 * Derives a sealed batch from its vaults and compares all its records. Throws `store_corrupt`,
 * which names the difference.
 */
async function recheckBatch(ledger: Ledger, batch: BatchRecord): Promise<void> {
  const { mode, batchNumber } = batch;
  const vaults = await readBatchVaults(ledger, batch);
  const [data, pageRoots, tokens] = await ledger.store.getMany([
    keyOf.batchData(mode, batchNumber),
    keyOf.pageRoots(mode, batchNumber),
    keyOf.batchTokens(mode, batchNumber),
  ]);
  const records = await recordsOf(ledger, batch, vaults, data);
  // The commitments of blobs are taken as stored, because the store must open where no KZG runs.
  // They lead to the content.
  const derived =
    "content" in records
      ? records
      : withCommitments(records, pointsIn(pageRoots ?? new Uint8Array()));
  const manifest = manifestRoot(derived.assets, leftOutPlaces(batch));
  const root = batchRoot(kindOf(mode, batch.inBlobs, batch.transfers), manifest, derived.content);
  const wrong = [
    (root !== batch.batchRoot || derived.content !== batch.content) && "root",
    derived.dataHash !== batch.dataHash && "data hash",
    (data === undefined || !data.equals(derived.data)) && "data",
    (pageRoots === undefined || !pageRoots.equals(derived.pageRoots)) && "page roots",
    (tokens === undefined || !tokens.equals(derived.tokens)) && "tokens",
  ].filter((name) => name !== false);
  if (wrong.length > 0) {
    const detail = `${batchIdOf(mode, batchNumber)}: ${wrong.join(", ")} do not follow from its vaults.`;
    throw new MintmarkError("store_corrupt", detail);
  }
}
