import { MintmarkError } from "../errors.ts";
import { enablementId, type Ledger } from "../ledger/ledger.ts";
import { batchIdOf, MODES, type Mode } from "../model.ts";
import { type BatchTokens, decodeBatchTokens, SHARDS } from "../store/batch-tokens.ts";
import { readEntry } from "../store/journal.ts";
import { decodeRecord, type Field } from "../store/layout.ts";
import type { Store } from "../store/ports.ts";
import {
  applicationRecord,
  assetRecord,
  type BatchRecord,
  batchRecord,
  divergenceRecord,
  headRecord,
  keyRecord,
  lostRecord,
  portalRecord,
  voidsRecord,
  webhookRecord,
} from "../store/records.ts";
import { batchTokensKey, DIVERGENCE_KEY, endOf, HEAD_KEY, journalKey, PREFIX } from "../store/store-keys.ts";
import { TokenIndex } from "../tokens/token-index.ts";
import { loadBatches } from "./load-batches.ts";
import { upgradeIndexes } from "./upgrade.ts";

/** Reads the state into memory. Throws `store_corrupt` for what does not fit together. See `loadBatches` for `seals`. */
export async function load(ledger: Ledger, seals: boolean): Promise<void> {
  const stored = await ledger.store.get(HEAD_KEY);
  if (stored === undefined) throw new MintmarkError("store_corrupt", "The store's head is missing.");
  ledger.head = decodeRecord(headRecord, stored, "The store's head");
  ledger.startClock();
  await requireJournalEnd(ledger);
  ledger.durableHead = ledger.head;
  const divergence = await ledger.store.get(DIVERGENCE_KEY);
  if (divergence !== undefined) ledger.divergence = decodeRecord(divergenceRecord, divergence, "The divergence");
  for await (const record of all(ledger.store, PREFIX.application, applicationRecord)) {
    ledger.applicationIndices.set(record.applicationId, record.applicationIndex);
    ledger.applications.load(record.applicationIndex, record);
  }
  for await (const record of all(ledger.store, PREFIX.key, keyRecord)) {
    ledger.keyIndices.set(record.keyId, record.keyIndex);
    ledger.keys.load(record.keyIndex, record);
  }
  for await (const record of all(ledger.store, PREFIX.asset, assetRecord)) {
    ledger.indexAsset(record);
    ledger.assets.load(record.assetIndex, record);
  }
  for await (const record of all(ledger.store, PREFIX.webhook, webhookRecord)) {
    ledger.webhookIndices.set(record.webhookId, record.webhookIndex);
    ledger.webhooks.load(record.webhookIndex, record);
  }
  for await (const record of all(ledger.store, PREFIX.portal, portalRecord)) {
    ledger.portals.load(record.chainId, record);
  }
  const enablements = Buffer.from([PREFIX.enablement]);
  for await (const [key] of ledger.store.entries({ gte: enablements, lt: endOf(enablements) })) {
    ledger.enablements.load(enablementId(key.readUInt32BE(1), key.readUInt32BE(5)), true);
  }
  for await (const record of all(ledger.store, PREFIX.batch, batchRecord)) {
    ledger.batches[record.mode].load(record.batchNumber, record);
  }
  for await (const { mode, batchNumber, runs } of all(ledger.store, PREFIX.voids, voidsRecord)) {
    ledger.voids[mode].load(batchNumber, runs);
  }
  for await (const record of all(ledger.store, PREFIX.lost, lostRecord)) {
    const { mode, batchNumber } = record;
    ledger.lost[mode].load(batchNumber, [...(ledger.lost[mode].latest(batchNumber) ?? []), record]);
  }
  // A standby gets them from its leader.
  if (seals) await upgradeIndexes(ledger);
  ledger.durableHead = ledger.head;
  await loadTokens(ledger);
  for (const mode of MODES) await loadBatches(ledger, mode, seals);
}

/** The tokens of a sealed batch, and the ref of its first vault. */
interface LoadedTokens extends BatchTokens {
  readonly firstRef: number;
}

/** Records of tokens that are read together. */
const RECORDS_AT_ONCE = 16;
/** Reads that are under way while what was read before is decoded. */
const READS_AHEAD = 2;

/** Makes the index of tokens from what each sealed batch has recorded of its own: one shard after another, over all batches. */
async function loadTokens(ledger: Ledger): Promise<void> {
  const loaded = await readTokens(
    ledger,
    MODES.flatMap((mode) => sealedBatches(ledger, mode)),
  );
  ledger.tokens = new TokenIndex(loaded.reduce((sum, { hashes }) => sum + hashes.length, 0));
  const ends = new Uint32Array(loaded.length);
  for (let shard = 0; shard < SHARDS; shard++) {
    for (const [i, { hashes, slots, firstRef }] of loaded.entries()) {
      const start = ends[i] as number;
      let end = start;
      while (end < hashes.length && ((hashes[end] as number) & (SHARDS - 1)) === shard) end++;
      ledger.tokens.insertAll(shard, hashes.subarray(start, end), slots.subarray(start, end), firstRef);
      ends[i] = end;
    }
  }
}

/** A mode's batches before the first that is not sealed. The vaults before each are counted here. */
function sealedBatches(ledger: Ledger, mode: Mode): BatchRecord[] {
  const sealed: BatchRecord[] = [];
  let firstOrdinal = 0;
  for (const batch of ledger.batches[mode].values()) {
    ledger.refs.setFirstOrdinal(mode, batch.batchNumber, firstOrdinal);
    if (batch.status === "open") break;
    sealed.push(batch);
    firstOrdinal += batch.vaultCount;
  }
  return sealed;
}

async function readTokens(ledger: Ledger, batches: readonly BatchRecord[]): Promise<LoadedTokens[]> {
  const loaded: LoadedTokens[] = [];
  const reads: Promise<(Buffer | undefined)[]>[] = [];
  for (let from = 0; from < batches.length; from += RECORDS_AT_ONCE) {
    for (let next = from + reads.length * RECORDS_AT_ONCE; reads.length <= READS_AHEAD; next += RECORDS_AT_ONCE) {
      reads.push(readRecords(ledger, batches.slice(next, next + RECORDS_AT_ONCE)));
    }
    for (const [i, record] of ((await reads.shift()) ?? []).entries()) {
      loaded.push(tokensOf(ledger, batches[from + i] as BatchRecord, record));
    }
  }
  return loaded;
}

function readRecords(ledger: Ledger, batches: readonly BatchRecord[]): Promise<(Buffer | undefined)[]> {
  const records = ledger.store.getMany(batches.map(({ mode, batchNumber }) => batchTokensKey(mode, batchNumber)));
  // A failure is told when it is waited for, unless what was read before is damaged already.
  records.catch(() => {});
  return records;
}

function tokensOf(
  ledger: Ledger,
  { mode, batchNumber, vaultCount }: BatchRecord,
  record: Buffer | undefined,
): LoadedTokens {
  const name = batchIdOf(mode, batchNumber);
  if (record === undefined) throw new MintmarkError("store_corrupt", `The tokens of ${name} are missing.`);
  const place = { mode, firstOrdinal: ledger.refs.firstOrdinalOf(mode, batchNumber) };
  // That of the last vault is within bounds, so all are.
  ledger.refs.refOf(place, vaultCount - 1);
  return { ...decodeBatchTokens(record, name), firstRef: ledger.refs.refOf(place, 0) };
}

/** The head and the journal are written together: anything else is damage. */
async function requireJournalEnd({ store, head }: Ledger): Promise<void> {
  await readEntry(store, head.journalLength - 1);
  if ((await store.get(journalKey(head.journalLength))) !== undefined) {
    throw new MintmarkError("store_corrupt", "The journal goes on after the store's head.");
  }
}

async function* all<T>(store: Store, prefix: number, field: Field<T>): AsyncGenerator<T> {
  const start = Buffer.from([prefix]);
  for await (const [key, record] of store.entries({ gte: start, lt: endOf(start) })) {
    yield decodeRecord(field, record, `Record ${key.toString("hex")}`);
  }
}
