import { MintmarkError } from "../errors.ts";
import type { Settlement } from "../ports.ts";
import { stateCommitment } from "../protocol/commitment.ts";
import { KzgThread } from "../protocol/kzg/kzg-thread.ts";
import type { EngineState } from "../protocol/proof.ts";
import type { VaultPlace } from "../protocol/vault.ts";
import { FORMAT_VERSION, formatRecord, requireFormat } from "../store/format.ts";
import { newSecrets, readSeed } from "../store/genesis.ts";
import { decodeEntry, readJournal, readJournalKinds } from "../store/journal.ts";
import { holdsStore } from "../store/level-folder.ts";
import { LevelStore } from "../store/level-store.ts";
import type { Database, Journal, Store, StoreOperation, StoreReader } from "../store/ports.ts";
import { endOf, HEAD_KEY, keyOf, keyString, PREFIX } from "../store/store-keys.ts";
import { CHUNK_VAULTS, decodeChunk } from "../store/vault-columns.ts";
import { type Foreseen, Reference } from "./reference.ts";
import type { Commit } from "./reference-derive.ts";
import { COMPARED_WHOLE, type Expected, type Report } from "./reference-records.ts";
import type { VaultAt } from "./reference-transfers.ts";
import { batchName } from "./reference-vaults.ts";

const MAX_PROBLEMS = 100;
const PROGRESS_EVERY = 1024;

/**
 * Derives every record from the journal by {@link Reference} and compares it with the store's, byte
 * for byte. Then looks for records without a journal entry. Works on a snapshot, so the engine can
 * continue.
 *
 * @param commit - the commitment to a blob
 */
export async function verifyStore(
  opened: Store,
  settlement: Settlement,
  options: VerifyOptions,
  commit: Commit,
): Promise<VerifyReport> {
  return opened.atSnapshot(async (store) => {
    const problems: string[] = [];
    const report: Report = (problem) => {
      if (problems.length < MAX_PROBLEMS) problems.push(problem);
    };
    const reference = await referenceOf(store, report, commit, (place) =>
      storedVault(store, place),
    );
    try {
      await derive(store, reference, options, (expected) => compare(store, expected, report));
    } catch (error) {
      // Records after a damaged entry cannot be derived, so the comparison ends here.
      if (!(error instanceof MintmarkError) || error.code !== "store_corrupt") throw error;
      report(error.message);
    }
    if (problems.length === 0) await compareRest(store, reference, report);
    options.onProgress?.(reference.entries);
    const { entries: journalEntries, roots, totals } = reference;
    const batches = roots.countValidium + roots.countRollup;
    const state = { ...roots, commitment: stateCommitment(settlement, roots) };
    return { journalEntries, batches, ...totals, state, problems };
  });
}

async function referenceOf(store: StoreReader, report: Report, commit: Commit, vaultAt: VaultAt) {
  return new Reference(report, {
    seed: await readSeed(store),
    foreseen: await foreseen(store),
    commit,
    vaultAt,
  });
}

/** Derives the records of the whole journal, and passes on those that are final. */
async function derive(
  store: StoreReader,
  reference: Reference,
  { signal, onProgress }: VerifyOptions,
  take: (records: readonly Expected[]) => Promise<void>,
): Promise<void> {
  for await (const journaled of readJournal(store)) {
    signal?.throwIfAborted();
    await take(await reference.apply(journaled));
    if (reference.entries % PROGRESS_EVERY === 0) onProgress?.(reference.entries);
  }
}

const VOIDINGS = ["slotsVoided", "slotsLeftOut", "transfersTakenBack"] as const;
const AHEAD = [...VOIDINGS, "idempotencyForgotten", "historyAdopted"] as const;

/** Reads ahead what later entries change. Leaves damage to the following read. */
async function foreseen(store: StoreReader): Promise<Foreseen> {
  const voidings = new Map<string, number>();
  const adoptions: Foreseen["adoptions"][number][] = [];
  let keysForgotten = 0;
  for await (const entry of readJournalKinds(store, AHEAD)) {
    if (entry.kind === "idempotencyForgotten") keysForgotten = entry.upTo;
    else if (entry.kind === "historyAdopted") adoptions.push(entry.firsts);
    else {
      const name = batchName({ mode: "zk-rollup", ...entry });
      voidings.set(name, (voidings.get(name) ?? 0) + 1);
    }
  }
  return { voidings, adoptions, keysForgotten };
}

/** Compares records that an entry alone determines. */
async function compare(
  store: StoreReader,
  expected: readonly Expected[],
  report: Report,
): Promise<void> {
  const stored = await store.getMany(expected.map(({ key }) => key));
  for (const [i, { key, value, name }] of expected.entries()) {
    const record = stored[i];
    if (record === undefined) report(`${name} is missing (${key.toString("hex")})`);
    else if (!record.equals(value))
      report(`${name} differs from the journal (${key.toString("hex")})`);
  }
}

/** A vault in the records; undefined when there is none. */
async function storedVault(store: StoreReader, { mode, batchNumber, slot }: VaultPlace) {
  const record = await store.get(keyOf.chunk(mode, batchNumber, Math.floor(slot / CHUNK_VAULTS)));
  return record && decodeChunk(record)[slot % CHUNK_VAULTS];
}

/** Compares the records that many entries determine, and the number of all others. */
async function compareRest(
  store: StoreReader,
  reference: Reference,
  report: Report,
): Promise<void> {
  const last = await reference.finish();
  const settled = new Map(last.map((expected) => [keyString(expected.key), expected]));
  const counts = new Map<number, number>();
  const whole = { gte: Buffer.from([0]), lt: endOf(Buffer.from([0xfe])) };
  for await (const [key, value] of store.entries(whole)) {
    const prefix = key[0] ?? 0;
    counts.set(prefix, (counts.get(prefix) ?? 0) + 1);
    const expected = settled.get(keyString(key));
    if (expected === undefined && !COMPARED_WHOLE.has(prefix)) continue;
    if (expected === undefined) report(`a record without a journal entry (${key.toString("hex")})`);
    else if (!value.equals(expected.value))
      report(`${expected.name} differs from the journal (${key.toString("hex")})`);
    settled.delete(keyString(key));
  }
  for (const { key, name } of settled.values())
    report(`${name} is missing (${key.toString("hex")})`);
  for (const [name, prefix] of Object.entries(PREFIX)) {
    const expected = reference.countOf(prefix);
    const found = counts.get(prefix) ?? 0;
    if (expected !== null && found !== expected)
      report(`there are ${found} records of ${name}, not ${expected}`);
  }
}

/** Options of `verify`. */
export interface VerifyOptions {
  /** Stops between two entries of the journal. */
  readonly signal?: AbortSignal | undefined;
  /** Called from time to time with the number of journal entries read. */
  readonly onProgress?: (entries: number) => void;
}

/** The result of `verify`. `problems` is empty when every record matches the journal. */
export interface VerifyReport {
  readonly journalEntries: number;
  readonly vaults: number;
  readonly batches: number;
  readonly mints: number;
  readonly tokens: number;
  readonly state: EngineState;
  /** Problems that name their record, at most 100. */
  readonly problems: readonly string[];
}

/** Options of {@link restoreStore}. A store whose restoring was stopped is useless. */
export type RestoreOptions = VerifyOptions;

const RECORDS_AT_ONCE = 4_096;

/**
 * Creates a store from a journal: copies the journal and derives every record with the second
 * implementation, which `verify` uses too. Resolves with the number of entries. An engine on the
 * store continues with the same roots.
 *
 * The store gets a new random secret: it refuses earlier cursors, and each webhook signs with
 * another secret.
 *
 * @param store - empty; closed when this settles. A refusal leaves it as it is. Its head is written
 *   last, so the engine refuses a partial store
 * @throws MintmarkError `store_mismatch` when the store is not empty or the journal has another
 *   format; `store_corrupt` for an invalid journal
 *
 * @example
 * await restoreStore(await LevelJournal.open("/other-disk/journal"), "./data");
 */
export async function restoreStore(
  journal: Journal,
  store: string | Database | Store,
  options: RestoreOptions = {},
): Promise<number> {
  const format = await formatOver(journal);
  if (typeof store === "string" && (await holdsStore(store))) throw notEmpty();
  const target = await LevelStore.of(store, true);
  const kzg = new KzgThread();
  try {
    for await (const _ of target.entries({ limit: 1 })) throw notEmpty();
    const records = recordsIn(target);
    await records.put([...newSecrets(), ...format]);
    let sequence = 0;
    for await (const entry of journal.read(0)) {
      options.signal?.throwIfAborted();
      await records.put([{ type: "put", key: keyOf.journal(sequence++), value: entry }]);
    }
    await records.flush();
    const report = (problem: string): never => {
      throw invalid(problem);
    };
    const commit: Commit = (blob) => kzg.commitment(blob);
    const reference = await referenceOf(target, report, commit, async (place) => {
      await records.flush();
      return storedVault(target, place);
    });
    await derive(target, reference, options, (expected) => records.put(expected.map(asPut)));
    const last = await reference.finish();
    await records.put(last.filter(({ key }) => !key.equals(HEAD_KEY)).map(asPut));
    await records.flush();
    await target.write(last.filter(({ key }) => key.equals(HEAD_KEY)).map(asPut));
    options.onProgress?.(reference.entries);
    return reference.entries;
  } finally {
    await kzg.close();
    await target.close();
  }
}

/**
 * The new store's records have this version's format, whatever the journal's genesis says. Throws
 * `store_mismatch` for a format that this version does not read, `store_corrupt` for an empty
 * journal.
 */
async function formatOver(journal: Journal): Promise<readonly StoreOperation[]> {
  for await (const first of journal.read(0)) {
    const { entry } = decodeEntry(0, first);
    if (entry.kind !== "genesis") return [];
    requireFormat("The journal", entry.formatVersion);
    return entry.formatVersion === FORMAT_VERSION ? [] : [formatRecord(FORMAT_VERSION)];
  }
  throw invalid("it is empty");
}

function invalid(problem: string): MintmarkError {
  return new MintmarkError("store_corrupt", `The journal gives no store: ${problem}.`);
}

function notEmpty(): MintmarkError {
  return new MintmarkError(
    "store_mismatch",
    "The new store already holds records; give an empty one.",
  );
}

function asPut({ key, value }: Expected): StoreOperation {
  return { type: "put", key, value };
}

function recordsIn(store: Store) {
  let waiting: StoreOperation[] = [];
  const flush = async (): Promise<void> => {
    const operations = waiting;
    waiting = [];
    if (operations.length > 0) await store.write(operations);
  };
  const put = async (operations: readonly StoreOperation[]): Promise<void> => {
    for (const operation of operations) waiting.push(operation);
    if (waiting.length >= RECORDS_AT_ONCE) await flush();
  };
  return { put, flush };
}
