import { sealLater } from "../../batches/seal.ts";
import { MintmarkError } from "../../errors.ts";
import { enablementId, type Ledger } from "../../ledger/ledger.ts";
import type { OpenBatch } from "../../ledger/open-batch.ts";
import { batchIdOf, MODES, type Mode } from "../../model.ts";
import { type BatchTokens, decodeBatchTokens, SHARDS } from "../../store/batch-tokens.ts";
import { readEntry } from "../../store/journal.ts";
import { decodeRecord, type Field } from "../../store/layout.ts";
import * as records from "../../store/records.ts";
import { type BatchRecord, headRecord } from "../../store/records.ts";
import { endOf, HEAD_KEY, keyOf, PREFIX } from "../../store/store-keys.ts";
import { TokenIndex } from "../../store/tokens/token-index.ts";
import { loadBatches } from "./load-batches.ts";

/**
 * Reads the state into memory. Throws `store_corrupt` for contradictions.
 *
 * @param seals - whether closed batches are sealed now; a standby leaves that to the leader
 */
export async function load(ledger: Ledger, seals: boolean): Promise<void> {
  const stored = await ledger.store.get(HEAD_KEY);
  if (stored === undefined) throw new MintmarkError("store_corrupt", "The store's head is missing.");
  ledger.head = decodeRecord(headRecord, stored, "The store's head");
  ledger.startClock();
  await requireJournalEnd(ledger);
  ledger.durableHead = ledger.head;
  for (const prefix of LOADED_PREFIXES) {
    const start = Buffer.from([prefix]);
    for await (const [key, value] of ledger.store.entries({ gte: start, lt: endOf(start) }))
      loadRecord(ledger, key, value);
  }
  await loadTokens(ledger);
  const closed: OpenBatch[] = [];
  for (const mode of MODES) closed.push(...(await loadBatches(ledger, mode)));
  // A seal writes the open batches of every mode, so all must be loaded.
  if (seals) for (const batch of closed) void sealLater(ledger, batch);
}

/** The tokens of a sealed batch, and the ref of its first vault. */
interface LoadedTokens extends BatchTokens {
  readonly firstRef: number;
}

const RECORDS_AT_ONCE = 16; // Token records per read
const READS_AHEAD = 2; // Reads under way during the decoding of earlier ones

/** Builds the token index from the records of sealed batches, shard by shard over all batches. */
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

/** A mode's sealed batches. Notes the number of vaults before each, and before the next one. */
function sealedBatches(ledger: Ledger, mode: Mode): BatchRecord[] {
  const sealed: BatchRecord[] = [];
  let firstOrdinal = 0;
  for (const batch of ledger.batches[mode].values()) {
    if (batch.status === "open") break;
    ledger.refs.set(mode, batch.batchNumber, firstOrdinal, firstOrdinal);
    sealed.push(batch);
    firstOrdinal += batch.vaultCount;
  }
  ledger.refs.set(mode, sealed.length, firstOrdinal, firstOrdinal);
  return sealed;
}

async function readTokens(ledger: Ledger, batches: readonly BatchRecord[]): Promise<LoadedTokens[]> {
  const loaded: LoadedTokens[] = [];
  const reads: Promise<(Buffer | undefined)[]>[] = [];
  for (let from = 0; from < batches.length; from += RECORDS_AT_ONCE) {
    for (let next = from + reads.length * RECORDS_AT_ONCE; reads.length <= READS_AHEAD; next += RECORDS_AT_ONCE)
      reads.push(readRecords(ledger, batches.slice(next, next + RECORDS_AT_ONCE)));
    for (const [i, record] of ((await reads.shift()) ?? []).entries())
      loaded.push(tokensOf(ledger, batches[from + i] as BatchRecord, record));
  }
  return loaded;
}

function readRecords(ledger: Ledger, batches: readonly BatchRecord[]): Promise<(Buffer | undefined)[]> {
  const records = ledger.store.getMany(batches.map(({ mode, batchNumber }) => keyOf.batchTokens(mode, batchNumber)));
  // The failure surfaces at the await, unless an earlier record is damaged.
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
  // The last vault is within bounds, so all are.
  ledger.refs.refOf(place, vaultCount - 1);
  return { ...decodeBatchTokens(record, name), firstRef: ledger.refs.refOf(place, 0) };
}

/** Head and journal are written together, so a difference is damage. */
async function requireJournalEnd({ store, head }: Ledger): Promise<void> {
  await readEntry(store, head.journalLength - 1);
  if ((await store.get(keyOf.journal(head.journalLength))) !== undefined)
    throw new MintmarkError("store_corrupt", "The journal goes on after the store's head.");
}

type Load = (ledger: Ledger, key: Buffer, value: Buffer) => void;

/** What takes a stored record into memory, for each prefix in the order of loading. */
const LOADERS: ReadonlyMap<number, Load> = new Map<number, Load>([
  of(PREFIX.divergence, records.divergenceRecord, (ledger, record) => {
    ledger.divergence = record;
  }),
  of(PREFIX.application, records.applicationRecord, (ledger, record) => {
    ledger.applicationIndices.set(record.applicationId, record.applicationIndex);
    ledger.applications.load(record.applicationIndex, record);
  }),
  of(PREFIX.key, records.keyRecord, (ledger, record) => {
    ledger.keyIndices.set(record.keyId, record.keyIndex);
    ledger.keys.load(record.keyIndex, record);
  }),
  of(PREFIX.asset, records.assetRecord, (ledger, record) => {
    ledger.indexAsset(record);
    ledger.assets.load(record.assetIndex, record);
  }),
  of(PREFIX.collection, records.collectionRecord, (ledger, record) => ledger.collections.load(record.assetId, record)),
  of(PREFIX.person, records.personRecord, (ledger, record) => ledger.loadPerson(record)),
  of(PREFIX.auditCount, records.auditCountRecord, (ledger, record) => ledger.auditCounts.load(record.log, record)),
  of(PREFIX.webhook, records.webhookRecord, (ledger, record) => {
    ledger.webhookIndices.set(record.webhookId, record.webhookIndex);
    ledger.webhooks.load(record.webhookIndex, record);
  }),
  of(PREFIX.portal, records.portalRecord, (ledger, record) => ledger.portals.load(record.chainId, record)),
  [PREFIX.enablement, (ledger: Ledger, key: Buffer) => ledger.enablements.load(enablementOf(key), true)],
  of(PREFIX.batch, records.batchRecord, (ledger, record) =>
    ledger.batches[record.mode].load(record.batchNumber, record),
  ),
  of(PREFIX.voids, records.voidsRecord, (ledger, { mode, batchNumber, runs }) =>
    ledger.voids[mode].load(batchNumber, runs),
  ),
  of(PREFIX.lost, records.lostRecord, (ledger, record) => {
    const { mode, batchNumber } = record;
    ledger.lost[mode].load(batchNumber, [...(ledger.lost[mode].latest(batchNumber) ?? []), record]);
  }),
]);

/** The prefixes of records that are held in memory, in the order of loading. */
export const LOADED_PREFIXES: readonly number[] = [...LOADERS.keys()];

/** Takes a stored record into memory. Skips records that are read on demand. Throws `store_corrupt`. */
export function loadRecord(ledger: Ledger, key: Buffer, value: Buffer): void {
  LOADERS.get(key[0] as number)?.(ledger, key, value);
}

export function enablementOf(key: Buffer): string {
  return enablementId(key.readUInt32BE(1), key.readUInt32BE(5));
}

function of<T>(prefix: number, field: Field<T>, load: (ledger: Ledger, record: T) => void): readonly [number, Load] {
  return [prefix, (ledger, key, value) => load(ledger, decodeRecord(field, value, `Record ${key.toString("hex")}`))];
}
