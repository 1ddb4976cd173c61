import { MintmarkError } from "../errors.ts";
import type { Settlement } from "../ports.ts";
import { stateCommitment } from "../protocol/commitment.ts";
import type { EngineState } from "../protocol/proof.ts";
import type { VaultPlace } from "../protocol/vault.ts";
import { readSeed } from "../store/genesis.ts";
import { journalLength, readJournal, readJournalKinds } from "../store/journal.ts";
import type { Store, StoreReader } from "../store/ports.ts";
import { endOf, keyOf, keyString, PREFIX } from "../store/store-keys.ts";
import { CHUNK_VAULTS, decodeChunk } from "../store/vault-columns.ts";
import { type Foreseen, Reference } from "./reference.ts";
import type { CommitToBlob } from "./reference-derive.ts";
import { COMPARED_WHOLE, type Expected, type ReportFault } from "./reference-records.ts";
import { batchName } from "./reference-vaults.ts";

const MAX_PROBLEMS = 100;
export const PROGRESS_EVERY = 1_024;
const RECORDS_EVERY = 65_536;
const DERIVING = 0.9; // The part of the time that the journal takes; all records take the rest

/** The store's snapshot, verified by {@link verifyReader}. */
export async function verifyStore(
  opened: Store,
  settlement: Settlement,
  options: VerifyOptions,
  commit: CommitToBlob,
): Promise<VerifyReport> {
  return opened.atSnapshot((store) => verifyReader(store, settlement, options, commit));
}

/**
 * Derives every record from the journal by {@link Reference} and compares it with the store's, byte
 * for byte. Then looks for records without a journal entry.
 *
 * @param commit - the commitment to a blob
 */
export async function verifyReader(
  store: StoreReader,
  settlement: Settlement,
  { signal, onProgress = () => {}, onShare = () => {} }: VerifyOptions,
  commit: CommitToBlob,
): Promise<VerifyReport> {
  const problems: string[] = [];
  const report: ReportFault = (problem) => {
    if (problems.length < MAX_PROBLEMS) problems.push(problem);
  };
  const reference = await referenceOf(store, report, commit, async () => {});
  const following = { signal, onProgress, onShare: (share: number) => onShare(share * DERIVING) };
  try {
    await derive(store, reference, following, (expected) => compare(store, expected, report));
  } catch (error) {
    // Records after a damaged entry cannot be derived, so the comparison ends here.
    if (!(error instanceof MintmarkError) || error.code !== "store_corrupt") throw error;
    report(error.message);
  }
  const { entries: journalEntries } = reference;
  if (problems.length === 0)
    await compareRest(store, reference, report, (share) => {
      signal?.throwIfAborted();
      onShare(DERIVING + share * (1 - DERIVING));
    });
  onProgress(journalEntries);
  onShare(1);
  const { roots, totals } = reference;
  const batches = roots.countValidium + roots.countRollup;
  const state = { ...roots, commitment: stateCommitment(settlement, roots) };
  return { journalEntries, batches, ...totals, state, problems };
}

/** @param settle - makes the records that are final readable */
export async function referenceOf(
  store: StoreReader,
  report: ReportFault,
  commit: CommitToBlob,
  settle: () => Promise<void>,
) {
  return new Reference(report, {
    seed: await readSeed(store),
    foreseen: await foreseen(store),
    commit,
    async vaultAt(place) {
      await settle();
      return storedVault(store, place);
    },
    async tokensAt({ mode, batchNumber }) {
      await settle();
      const record = await store.get(keyOf.batchTokens(mode, batchNumber));
      if (record !== undefined) return record;
      const name = batchName({ mode, batchNumber });
      throw new MintmarkError("store_corrupt", `The tokens of ${name} are missing.`);
    },
  });
}

/** Derives the records of the whole journal, and passes on those that are final. */
export async function derive(
  store: StoreReader,
  reference: Reference,
  { signal, onProgress, onShare }: VerifyOptions,
  take: (records: readonly Expected[]) => Promise<void>,
): Promise<void> {
  const length = await journalLength(store);
  for await (const journaled of readJournal(store)) {
    signal?.throwIfAborted();
    await take(await reference.apply(journaled));
    const { entries } = reference;
    if (entries % PROGRESS_EVERY !== 0) continue;
    onProgress?.(entries);
    onShare?.(entries / length);
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
  report: ReportFault,
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
  report: ReportFault,
  onPart: (share: number) => void,
): Promise<void> {
  const last = await reference.finish();
  const settled = new Map(last.map((expected) => [keyString(expected.key), expected]));
  const counts = new Map<number, number>();
  const whole = { gte: Buffer.from([0]), lt: endOf(Buffer.from([0xfe])) };
  let read = 0;
  for await (const [key, value] of store.entries(whole)) {
    if (++read % RECORDS_EVERY === 0) onPart(Math.min(1, read / reference.records));
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
  /** Called from time to time with the share of the work that is done, from 0 to 1. */
  readonly onShare?: (share: number) => void;
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
