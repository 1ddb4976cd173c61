import { severalAtOnce } from "../at-once.ts";
import { sealLater } from "../batches/seal.ts";
import { claimDeposits } from "../deposits/makings.ts";
import { MintmarkError } from "../errors.ts";
import type { EventHub } from "../ledger/event-hub.ts";
import { Ledger } from "../ledger/ledger.ts";
import type { OpenBatch } from "../ledger/open-batch.ts";
import type { EngineOptions } from "../ledger/options.ts";
import { enablementId } from "../ledger/tenant-tables.ts";
import { batchIdOf, type Limits, MODES, type Mode } from "../model.ts";
import type { Settlement } from "../ports.ts";
import { MAX_UINT64, requireBigint, requireInteger } from "../protocol/bounds.ts";
import { Stack } from "../stack.ts";
import { requireBeginning } from "../store/backup.ts";
import { FORMAT_VERSION, upgradeFormat } from "../store/format.ts";
import {
  createStore,
  genesisOf,
  readSeed,
  requireEmpty,
  requireSameStore,
} from "../store/genesis.ts";
import { readEntry } from "../store/journal.ts";
import { withJournal } from "../store/journaled-store.ts";
import { decodeRecord, type Field } from "../store/layout.ts";
import { storeMissing } from "../store/level-folder.ts";
import { LevelStore } from "../store/level-store.ts";
import type { Store } from "../store/ports.ts";
import * as records from "../store/records.ts";
import {
  endOf,
  HEAD_KEY,
  keyOf,
  POSITION_KEY,
  PREFIX,
  prefixOf,
  SECRET_KEY,
} from "../store/store-keys.ts";
import { type BatchTokens, decodeBatchTokens, SHARDS, TokenIndex } from "../store/token-index.ts";
import { requireAddress } from "../validate.ts";
import { loadBatches } from "./load-batches.ts";

const MAX_UINT32 = 2 ** 32 - 1;

export interface Opened {
  readonly ledger: Ledger;
  /** 32 random bytes of this store, for cursors. */
  readonly secret: Buffer;
}

/**
 * Opens the store, creates it if `createIfMissing` allows, and loads the state. Derives the newest
 * sealed batch of each mode again and compares it. Rejects with `store_missing`, `store_locked`,
 * `store_mismatch`, `store_corrupt`, `store_failed`; the store is closed then.
 *
 * @param role - a standby changes nothing and follows the leader's writes
 */
export async function openLedger(
  options: EngineOptions,
  limits: Limits,
  emit: EventHub["emit"],
  role: "leader" | "standby",
): Promise<Opened> {
  await using opened = new Stack();
  const store = await openStore(options);
  opened.defer(() => store.close());
  if ((await store.get(HEAD_KEY)) === undefined) {
    await requireEmpty(store);
    if (options.createIfMissing !== true)
      throw storeMissing(typeof options.store === "string" ? options.store : "it");
    await createStore(store, genesisOf(options), options.clock?.() ?? Date.now());
  }
  const ledger = new Ledger(store, options, limits, emit, await readSeed(store));
  await load(ledger, role === "leader");
  if (role === "leader") beginClaims(ledger);
  if (role === "standby") ledger.writer.refuse(new MintmarkError("not_leader"));
  const secret = await store.get(SECRET_KEY);
  if (secret?.length !== 32)
    throw new MintmarkError("store_corrupt", "The store's secret is missing.");
  opened.move();
  return { ledger, secret };
}

/**
 * Gives deposits to users one after the other, first those that a process before this one left. A
 * claim that fails has failed the store, or is made at the next opening.
 */
function beginClaims(ledger: Ledger): void {
  let last = Promise.resolve();
  ledger.tenants.claimDeposits = (owner) => {
    if (ledger.batches.makings.unclaimed > 0)
      last = last.then(() => claimDeposits(ledger, owner)).catch(() => {});
  };
  ledger.tenants.claimDeposits(null);
}

/**
 * The store of these options, with its journal brought up to it. Writes nothing for a store of
 * others.
 */
async function openStore(options: EngineOptions): Promise<Store> {
  const { store: named, journal, createIfMissing } = options;
  await using opened = new Stack();
  const store = await LevelStore.of(named, createIfMissing === true);
  opened.defer(() => store.close());
  if (store instanceof LevelStore && (await store.get(POSITION_KEY)) !== undefined) {
    // Alone, an engine would write what the cluster's journal never gets.
    const detail =
      "This store is a server's of a cluster. Open it with the cluster's journal (MINTMARK_JOURNAL).";
    throw new MintmarkError("store_mismatch", detail);
  }
  const isNew = (await store.get(HEAD_KEY)) === undefined;
  const format = isNew ? FORMAT_VERSION : await requireSameStore(store, genesisOf(options));
  await upgradeFormat(store, format, async () => {
    // A wrong backup must not cost the way back to the version before.
    if (journal !== undefined) await requireBeginning(store, journal);
    // A cluster's store raises each server's file when the step comes to it.
    if (store instanceof LevelStore) await store.raiseFormat();
  });
  // The step may write to the backup, which the version before then refuses, so it comes first.
  const whole = journal === undefined ? store : await withJournal(store, journal);
  opened.move();
  return whole;
}

/** The settlement with its contract in lower case. Throws `validation_failed`. */
export function canonicalSettlement({ chainId, contract, engineVersion }: Settlement): Settlement {
  requireBigint("settlement.chainId", chainId, 1n, MAX_UINT64);
  requireInteger("settlement.engineVersion", engineVersion, 0, MAX_UINT32);
  return { chainId, contract: requireAddress("settlement.contract", contract), engineVersion };
}

/**
 * Reads the state into memory. Throws `store_corrupt` for contradictions.
 *
 * @param seals - whether closed batches are sealed now; a standby leaves that to the leader
 */
async function load(ledger: Ledger, seals: boolean): Promise<void> {
  const stored = await ledger.store.get(HEAD_KEY);
  if (stored === undefined)
    throw new MintmarkError("store_corrupt", "The store's head is missing.");
  ledger.journal.head.load(decodeRecord(records.headRecord, stored, "The store's head"));
  ledger.journal.clock.start(ledger.journal.head.durable.time);
  // Head and journal are written together, so a difference is damage.
  const { journalLength } = ledger.journal.head.durable;
  await readEntry(ledger.store, journalLength - 1);
  if ((await ledger.store.get(keyOf.journal(journalLength))) !== undefined)
    throw new MintmarkError("store_corrupt", "The journal goes on after the store's head.");
  for (const prefix of LOADED_PREFIXES) {
    const start = Buffer.from([prefix]);
    for await (const [key, value] of ledger.store.entries({ gte: start, lt: endOf(start) }))
      loadRecord(ledger, key, value);
  }
  await loadTokens(ledger);
  await loadMakings(ledger);
  const closed: OpenBatch[] = [];
  for (const mode of MODES) closed.push(...(await loadBatches(ledger, mode)));
  // A seal writes the open batches of every mode, so all must be loaded.
  if (seals) for (const batch of closed) void sealLater(ledger, batch);
}

/** Counts what is unclaimed, and takes the ERC-721 ids that came back from L1 into the index. */
async function loadMakings(ledger: Ledger): Promise<void> {
  const rangeOf = (start: Buffer) => ({ gte: start, lt: endOf(start) });
  for await (const _ of ledger.store.entries(rangeOf(prefixOf.unclaimed())))
    ledger.batches.makings.unclaimed++;
  for await (const [key, making] of ledger.store.entries(rangeOf(prefixOf.entry())))
    indexEntry(ledger, key, making);
}

/** Adds an entry of an asset that this store has to the index of tokens. */
export function indexEntry(ledger: Ledger, key: Buffer, making: Buffer): void {
  const assetType = `0x${key.toString("hex", 1, 33)}`;
  const name = `${ledger.services.settlement.chainId} ${assetType}`;
  const tokenId = BigInt(`0x${key.toString("hex", 33)}`);
  for (const { assetIndex } of ledger.tenants.assetsByType.records(name, null))
    ledger.minting.tokens.insert(
      ledger.minting.hasher.ofId(assetIndex, tokenId),
      ledger.batches.refs.refOfMade(making.readUInt32BE()),
    );
}

/** The tokens of a sealed batch, and the ref of its first vault. */
interface LoadedTokens extends BatchTokens {
  readonly firstRef: number;
}

const RECORDS_AT_ONCE = 16; // Token records per read
const READS_AT_ONCE = 3; // Others are under way while one is decoded
/** Vaults of the batches whose tokens are in memory besides the index, in 8 bytes each. */
const VAULTS_AT_ONCE = 1 << 22;

/**
 * Builds the token index from the records of sealed batches, shard by shard over many batches.
 *
 * A large store's batches come in several parts, so that their records do not take as much memory
 * as the index itself. Each part has batches of all the store, so the first one tells about how
 * many tokens there are; an index that is too small for the others grows.
 */
export async function loadTokens(ledger: Ledger, vaultsAtOnce = VAULTS_AT_ONCE): Promise<void> {
  const batches = MODES.flatMap((mode) => sealedBatches(ledger, mode));
  const vaults = vaultsIn(batches);
  const parts = Math.max(1, Math.min(Math.ceil(vaults / vaultsAtOnce), batches.length));
  for (let part = 0; part < parts; part++) {
    const some = batches.filter((_, i) => i % parts === part);
    const loaded = await readTokens(ledger, some);
    const tokens = loaded.reduce((sum, { hashes }) => sum + hashes.length, 0);
    if (part === 0)
      ledger.minting.tokens = new TokenIndex((tokens / Math.max(1, vaultsIn(some))) * vaults);
    indexTokens(ledger.minting.tokens, loaded);
  }
}

function vaultsIn(batches: readonly records.BatchRecord[]): number {
  return batches.reduce((sum, { vaultCount }) => sum + vaultCount, 0);
}

function indexTokens(index: TokenIndex, loaded: readonly LoadedTokens[]): void {
  const ends = new Uint32Array(loaded.length);
  for (let shard = 0; shard < SHARDS; shard++) {
    for (const [i, { hashes, slots, firstRef }] of loaded.entries()) {
      const start = ends[i]!;
      let end = start;
      while (end < hashes.length && (hashes[end]! & (SHARDS - 1)) === shard) end++;
      index.insertAll(shard, hashes.subarray(start, end), slots.subarray(start, end), firstRef);
      ends[i] = end;
    }
  }
}

/** A mode's sealed batches. Notes the number of vaults before each, and before the next one. */
function sealedBatches(ledger: Ledger, mode: Mode): records.BatchRecord[] {
  const sealed: records.BatchRecord[] = [];
  let firstOrdinal = 0;
  for (const batch of ledger.batches.records[mode].durable.values()) {
    if (batch.status === "open") break;
    ledger.batches.refs.set(mode, batch.batchNumber, firstOrdinal);
    sealed.push(batch);
    firstOrdinal += batch.vaultCount;
  }
  ledger.batches.refs.set(mode, sealed.length, firstOrdinal);
  return sealed;
}

/** The tokens of these batches, all in one piece of memory. */
async function readTokens(
  ledger: Ledger,
  batches: readonly records.BatchRecord[],
): Promise<LoadedTokens[]> {
  const words = new Uint32Array(2 * vaultsIn(batches));
  let used = 0;
  const reads = Math.ceil(batches.length / RECORDS_AT_ONCE);
  const firsts = Array.from({ length: reads }, (_, i) => i * RECORDS_AT_ONCE);
  const readFrom = async (first: number) => {
    const some = batches.slice(first, first + RECORDS_AT_ONCE);
    const stored = await ledger.store.getMany(
      some.map((batch) => keyOf.batchTokens(batch.mode, batch.batchNumber)),
    );
    return some.map(({ mode, batchNumber, vaultCount }, i): LoadedTokens => {
      const name = batchIdOf(mode, batchNumber);
      const record = stored[i];
      if (record === undefined)
        throw new MintmarkError("store_corrupt", `The tokens of ${name} are missing.`);
      const place = { mode, firstOrdinal: ledger.batches.refs.firstOrdinalOf(mode, batchNumber) };
      // The last vault is within bounds, so all are.
      ledger.batches.refs.refOf(place, vaultCount - 1);
      const tokens = decodeBatchTokens(record, name, words.subarray(used));
      used += 2 * tokens.hashes.length;
      return { ...tokens, firstRef: ledger.batches.refs.refOf(place, 0) };
    });
  };
  return (await severalAtOnce(firsts, readFrom, READS_AT_ONCE)).flat();
}

type Load = (ledger: Ledger, key: Buffer, value: Buffer) => void;

/** Loads stored records into memory, one prefix after another in this order. */
const LOADERS: ReadonlyMap<number, Load> = new Map<number, Load>([
  of(PREFIX.divergence, records.divergenceRecord, (ledger, record) => {
    ledger.l1.divergence = record;
  }),
  of(PREFIX.application, records.applicationRecord, (ledger, record) =>
    ledger.tenants.applications.add(record),
  ),
  of(PREFIX.key, records.keyRecord, (ledger, record) => ledger.tenants.keys.add(record)),
  of(PREFIX.asset, records.assetRecord, (ledger, record) => {
    ledger.tenants.standards[record.assetIndex] = record.standard;
    ledger.tenants.assets.add(record);
  }),
  of(PREFIX.collection, records.collectionRecord, (ledger, record) =>
    ledger.tenants.collections.add(record),
  ),
  of(PREFIX.person, records.personRecord, (ledger, record) => ledger.tenants.people.add(record)),
  of(PREFIX.auditCount, records.auditCountRecord, (ledger, record) =>
    ledger.tenants.auditCounts.add(record),
  ),
  of(PREFIX.webhook, records.webhookRecord, (ledger, record) =>
    ledger.tenants.webhooks.add(record),
  ),
  of(PREFIX.portal, records.portalRecord, (ledger, record) => ledger.l1.portals.add(record)),
  [
    PREFIX.enablement,
    (ledger: Ledger, key: Buffer) => ledger.tenants.enablements.load(enablementOf(key), true),
  ],
  of(PREFIX.batch, records.batchRecord, (ledger, record) =>
    ledger.batches.records[record.mode].load(record.batchNumber, record),
  ),
  [
    PREFIX.making,
    (ledger: Ledger, key: Buffer, value: Buffer) => {
      const making = key.readUInt32BE(1);
      const { vaults } = decodeRecord(records.makingRecord, value, batchIdOf("made", making));
      ledger.batches.makings.load(making, vaults.length);
    },
  ],
  [
    PREFIX.trade,
    (ledger: Ledger, key: Buffer, value: Buffer) =>
      ledger.trades.load(
        key.readBigUInt64BE(1),
        decodeRecord(records.orderIdRecord, value, "The order of a traded vault"),
      ),
  ],
  of(PREFIX.voids, records.voidsRecord, (ledger, { mode, batchNumber, runs }) =>
    ledger.batches.voids[mode].load(batchNumber, runs),
  ),
  of(PREFIX.lost, records.lostRecord, (ledger, record) => {
    const { mode, batchNumber } = record;
    ledger.l1.lost[mode].load(batchNumber, [
      ...(ledger.l1.lost[mode].durable.get(batchNumber) ?? []),
      record,
    ]);
  }),
]);

/** The prefixes of records that are held in memory, in the order of loading. */
const LOADED_PREFIXES: readonly number[] = [...LOADERS.keys()];

/**
 * Takes a stored record into memory. Skips records that are read on demand. Throws `store_corrupt`.
 */
export function loadRecord(ledger: Ledger, key: Buffer, value: Buffer): void {
  LOADERS.get(key[0]!)?.(ledger, key, value);
}

export function enablementOf(key: Buffer): string {
  return enablementId(key.readUInt32BE(1), key.readUInt32BE(5));
}

function of<T>(
  prefix: number,
  field: Field<T>,
  load: (ledger: Ledger, record: T) => void,
): readonly [number, Load] {
  return [
    prefix,
    (ledger, key, value) =>
      load(ledger, decodeRecord(field, value, `Record ${key.toString("hex")}`)),
  ];
}
