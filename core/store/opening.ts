import { randomBytes } from "node:crypto";
import type { EngineEvents, EngineOptions, Limits } from "../engine-types.ts";
import { MintmarkError } from "../errors.ts";
import { chunkRecords, readBatchVaults, requireCount, tokenHashOf } from "../ledger/batches/batch-vaults.ts";
import { deriveBatch } from "../ledger/batches/derive-batch.ts";
import { OpenBatch } from "../ledger/batches/open-batch.ts";
import { sealLater, stateLeafOf } from "../ledger/batches/seal.ts";
import { enablementId, Ledger } from "../ledger/ledger.ts";
import { type BatchTokens, decodeBatchTokens } from "../ledger/tokens/batch-tokens.ts";
import { SHARDS, TokenIndex } from "../ledger/tokens/token-index.ts";
import { batchIdOf } from "../ledger/vaults/vaults.ts";
import { MODES, type Mode } from "../model.ts";
import type { Settlement } from "../ports.ts";
import { bytesToHex, hexToBytes } from "../protocol/hex.ts";
import { StateHistory } from "../protocol/state-tree.ts";
import type { Store, StoreOperation, StoreReader } from "../store-ports.ts";
import type { EntryOf } from "./entries.ts";
import { encodeEntry, readEntry } from "./journal.ts";
import { JournaledStore } from "./journaled-store.ts";
import { decodeRecord, encodeRecord, type Field, hash } from "./layout.ts";
import { LevelStore } from "./level-store.ts";
import {
  applicationRecord,
  assetRecord,
  type BatchRecord,
  batchRecord,
  headRecord,
  keyRecord,
  portalRecord,
  voidsRecord,
  webhookRecord,
} from "./records.ts";
import {
  batchDataKey,
  batchTokensKey,
  endOf,
  HEAD_KEY,
  journalKey,
  PREFIX,
  pageRootsKey,
  portalKey,
  SECRET_KEY,
  SEED_KEY,
} from "./store-keys.ts";

/** Version of everything this store holds. */
const FORMAT_VERSION = 4;

export interface Opened {
  readonly ledger: Ledger;
  /** 32 random bytes of this store, for cursors. */
  readonly secret: Buffer;
}

/**
 * Opens the store, or makes it, and loads the state. The newest sealed batch of each mode is derived again and compared.
 * Rejects with `store_locked`, `store_mismatch`, `store_corrupt`, `store_failed`; the store is closed then.
 */
export async function openLedger(
  options: EngineOptions,
  limits: Limits,
  emit: <K extends keyof EngineEvents>(type: K, event: EngineEvents[K]) => void,
): Promise<Opened> {
  const store = await openStore(options);
  try {
    const genesis = genesisOf(options);
    if ((await store.get(HEAD_KEY)) === undefined) await createStore(store, genesis, options.clock?.() ?? Date.now());
    await requireSameStore(store, genesis);
    const ledger = new Ledger(store, options, limits, emit, await readSeed(store));
    await load(ledger);
    const secret = await store.get(SECRET_KEY);
    if (secret?.length !== 32) throw new MintmarkError("store_corrupt", "The store's secret is missing.");
    return { ledger, secret };
  } catch (error) {
    await store.close();
    throw error;
  }
}

/** The store of these options, and its journal brought up to it. */
async function openStore({ store: named, journal }: Pick<EngineOptions, "store" | "journal">): Promise<Store> {
  const store = await LevelStore.of(named);
  if (journal === undefined) return store;
  try {
    return await JournaledStore.open(store, journal);
  } catch (error) {
    await store.close();
    throw error;
  }
}

function genesisOf({ environment, settlement }: EngineOptions): EntryOf<"genesis"> {
  const { chainId, contract, engineVersion } = settlement;
  return { kind: "genesis", formatVersion: FORMAT_VERSION, environment, chainId, contract, engineVersion };
}

async function createStore(store: Store, genesis: EntryOf<"genesis">, time: number): Promise<void> {
  for await (const _ of store.entries({ limit: 1 })) {
    throw new MintmarkError("store_corrupt", "The store holds records but no head; it is not an engine's, or damaged.");
  }
  const head = { journalLength: 1, time, userCount: 0, keysForgotten: 0 };
  const home = { chainId: genesis.chainId, contract: genesis.contract, observed: null, finalized: null };
  await store.write([
    { type: "put", key: journalKey(0), value: encodeEntry(time, genesis) },
    ...newSecrets(),
    { type: "put", key: portalKey(genesis.chainId), value: encodeRecord(portalRecord, home) },
    { type: "put", key: HEAD_KEY, value: encodeRecord(headRecord, head) },
  ]);
}

/** What a store has of its own, and no journal determines. */
export function newSecrets(): StoreOperation[] {
  return [
    { type: "put", key: SECRET_KEY, value: randomBytes(32) },
    { type: "put", key: SEED_KEY, value: encodeRecord(hash, bytesToHex(randomBytes(32))) },
  ];
}

/** Another seed than the one that the stored hashes were made with would hide every token, so it has its own checksum. */
export async function readSeed(store: Pick<StoreReader, "get">): Promise<Uint8Array> {
  const record = await store.get(SEED_KEY);
  if (record === undefined) throw new MintmarkError("store_corrupt", "The store's seed is missing.");
  return hexToBytes(decodeRecord(hash, record, "The store's seed"), 32);
}

/** Throws `store_mismatch` and names what differs. */
async function requireSameStore(store: Store, expected: EntryOf<"genesis">): Promise<void> {
  const { entry } = await readEntry(store, 0);
  if (entry.kind !== "genesis")
    throw new MintmarkError("store_corrupt", "The journal does not begin with its genesis.");
  for (const name of ["formatVersion", "environment", "chainId", "contract", "engineVersion"] as const) {
    const [is, asked] = [String(entry[name]), String(expected[name])];
    if (is !== asked) throw new MintmarkError("store_mismatch", `The store's ${name} is ${is}, not ${asked}.`);
  }
}

async function load(ledger: Ledger): Promise<void> {
  const stored = await ledger.store.get(HEAD_KEY);
  if (stored === undefined) throw new MintmarkError("store_corrupt", "The store's head is missing.");
  ledger.head = decodeRecord(headRecord, stored, "The store's head");
  ledger.durableHead = ledger.head;
  await requireJournalEnd(ledger);
  for await (const record of all(ledger.store, PREFIX.application, applicationRecord)) {
    ledger.applicationIndices.set(record.applicationId, record.applicationIndex);
    ledger.applications.load(record.applicationIndex, record);
  }
  for await (const record of all(ledger.store, PREFIX.key, keyRecord)) {
    ledger.keyIndices.set(record.keyId, record.keyIndex);
    ledger.keys.load(record.keyIndex, record);
  }
  for await (const record of all(ledger.store, PREFIX.asset, assetRecord)) {
    ledger.assetIndices.set(record.assetId, record.assetIndex);
    ledger.standards[record.assetIndex] = record.standard;
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
  await loadTokens(ledger);
  for (const mode of MODES) await loadBatches(ledger, mode);
}

/** Makes the index of tokens from what each sealed batch has recorded of its own. */
async function loadTokens(ledger: Ledger): Promise<void> {
  const loaded: { readonly tokens: BatchTokens; readonly mode: Mode; readonly firstOrdinal: number }[] = [];
  let count = 0;
  for (const mode of MODES) {
    let firstOrdinal = 0;
    for (const { status, batchNumber, vaultCount } of ledger.batches[mode].values()) {
      ledger.setFirstOrdinal(mode, batchNumber, firstOrdinal);
      if (status === "open") break;
      const record = await ledger.store.get(batchTokensKey(mode, batchNumber));
      const name = batchIdOf(mode, batchNumber);
      if (record === undefined) throw new MintmarkError("store_corrupt", `The tokens of ${name} are missing.`);
      const tokens = decodeBatchTokens(record, name);
      loaded.push({ tokens, mode, firstOrdinal });
      count += tokens.hashes.length;
      firstOrdinal += vaultCount;
    }
  }
  ledger.tokens = new TokenIndex(count);
  const cursors = new Uint32Array(loaded.length);
  for (let shard = 0; shard < SHARDS; shard++) {
    for (const [i, { tokens, mode, firstOrdinal }] of loaded.entries()) {
      const { hashes, slots } = tokens;
      let at = cursors[i] as number;
      for (; at < hashes.length && ((hashes[at] as number) & (SHARDS - 1)) === shard; at++) {
        ledger.tokens.insert(hashes[at] as number, ledger.refOf({ mode, firstOrdinal }, slots[at] as number));
      }
      cursors[i] = at;
    }
  }
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

async function loadBatches(ledger: Ledger, mode: Mode): Promise<void> {
  const batches = ledger.batches[mode];
  const history = new StateHistory();
  let newest: BatchRecord | null = null;
  const unsealed: BatchRecord[] = [];
  for (let number = 0; number < batches.latestCount; number++) {
    const batch = batches.get(number);
    if (batch === undefined || (unsealed.length > 0 && batch.status !== "open"))
      throw new MintmarkError("store_corrupt", `${batchIdOf(mode, number)} is missing.`);
    if (batch.status === "open") unsealed.push(batch);
    else {
      history.append(stateLeafOf(batch));
      newest = batch;
    }
  }
  ledger.loadHistory(mode, history);
  if (newest !== null) await recheckBatch(ledger, newest);
  await loadUnsealed(ledger, mode, unsealed);
}

/** The newest batch without a seal takes mints; those before it were closed, and are sealed now. */
async function loadUnsealed(ledger: Ledger, mode: Mode, unsealed: readonly BatchRecord[]): Promise<void> {
  const sealed = ledger.latestHistory(mode).count;
  let firstOrdinal = vaultsBefore(ledger, mode, sealed);
  if (unsealed.length === 0) {
    ledger.setOpen(new OpenBatch(mode, sealed, ledger.head.time, firstOrdinal, ledger.limits));
  }
  const closed: OpenBatch[] = [];
  for (const record of unsealed) {
    const batch = await loadUnsealedBatch(ledger, record, firstOrdinal);
    ledger.setOpen(batch);
    closed.push(batch);
    firstOrdinal += batch.vaultCount;
  }
  for (const batch of closed.slice(0, -1)) void sealLater(ledger, batch);
}

async function loadUnsealedBatch(ledger: Ledger, record: BatchRecord, firstOrdinal: number): Promise<OpenBatch> {
  const open = new OpenBatch(record.mode, record.batchNumber, record.openedAt, firstOrdinal, ledger.limits);
  for await (const chunk of chunkRecords(ledger, record)) {
    const first = open.vaultCount;
    open.load(chunk, ledger.standards, (vault) => tokenHashOf(ledger, vault));
    for (let slot = first; slot < open.vaultCount; slot++) {
      if (ledger.standards[open.vaults.assetIndex[slot] as number] !== "erc721") continue;
      ledger.tokens.insert(open.vaults.tokenHash[slot] as number, ledger.refOf(open, slot));
    }
  }
  requireCount(record, open.vaultCount);
  open.mintCount = record.mintCount;
  return open;
}

function vaultsBefore(ledger: Ledger, mode: Mode, batchNumber: number): number {
  let vaults = 0;
  for (let number = 0; number < batchNumber; number++) vaults += ledger.batches[mode].get(number)?.vaultCount ?? 0;
  return vaults;
}

/** Derives a sealed batch from its vaults and compares all its records. Throws `store_corrupt` and names what differs. */
export async function recheckBatch(ledger: Ledger, batch: BatchRecord): Promise<void> {
  const { mode, batchNumber } = batch;
  const vaults = await readBatchVaults(ledger, batch);
  const voids = ledger.voids[mode].latest(batchNumber);
  const derived = deriveBatch(batch, vaults, (index) => ledger.assetAt(index), voids);
  const [data, pageRoots, tokens] = await ledger.store.getMany([
    batchDataKey(mode, batchNumber),
    pageRootsKey(mode, batchNumber),
    batchTokensKey(mode, batchNumber),
  ]);
  const wrong = [
    derived.batchRoot !== batch.batchRoot && "root",
    derived.dataHash !== batch.dataHash && "data hash",
    (data === undefined || !data.equals(derived.data)) && "data",
    (pageRoots === undefined || !pageRoots.equals(derived.pageRoots)) && "page roots",
    (tokens === undefined || !tokens.equals(derived.tokens)) && "tokens",
  ].filter((name) => name !== false);
  if (wrong.length > 0) {
    throw new MintmarkError(
      "store_corrupt",
      `${batchIdOf(mode, batchNumber)}: ${wrong.join(", ")} do not follow from its vaults.`,
    );
  }
}

/** The settlement with its contract in lower case. */
export function canonicalSettlement({ chainId, contract, engineVersion }: Settlement): Settlement {
  return { chainId, contract: contract.toLowerCase() as Settlement["contract"], engineVersion };
}
