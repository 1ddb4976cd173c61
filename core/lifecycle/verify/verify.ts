import { MintmarkError } from "../../errors.ts";
import type { Settlement } from "../../ports.ts";
import { stateCommitment } from "../../protocol/commitment.ts";
import type { EngineState } from "../../protocol/proof.ts";
import type { VaultPlace } from "../../protocol/vault.ts";
import { readSeed } from "../../store/genesis.ts";
import { readJournal, readJournalKinds } from "../../store/journal.ts";
import type { Store, StoreReader } from "../../store/ports.ts";
import { endOf, keyOf, keyString, PREFIX } from "../../store/store-keys.ts";
import { CHUNK_VAULTS, decodeChunk, type StoredVault } from "../../store/vault-columns.ts";
import { type Foreseen, Reference } from "./reference.ts";
import { batchName } from "./reference-batches.ts";
import type { Commit } from "./reference-derive.ts";
import { COMPARED_WHOLE, type Expected } from "./reference-records.ts";

const MAX_PROBLEMS = 100;
const PROGRESS_EVERY = 1024;

/**
 * Derives every record from the journal by {@link Reference} and compares it with the store's, byte for byte. Then
 * looks for records without a journal entry. Works on a snapshot, so the engine can continue.
 *
 * @param commit - the commitment to a blob
 */
export async function verifyStore(
  opened: Store,
  settlement: Settlement,
  { signal, onProgress }: VerifyOptions,
  commit: Commit,
): Promise<VerifyReport> {
  return opened.atSnapshot(async (store) => {
    const problems: string[] = [];
    const report = (problem: string): void => {
      if (problems.length < MAX_PROBLEMS) problems.push(problem);
    };
    const vaultAt = (place: VaultPlace) => storedVault(store, place);
    const sources = { seed: await readSeed(store), foreseen: await foreseen(store), commit, vaultAt };
    const reference = new Reference(report, sources);
    try {
      for await (const journaled of readJournal(store)) {
        signal?.throwIfAborted();
        await compare(store, await reference.apply(journaled), report);
        if (reference.entries % PROGRESS_EVERY === 0) onProgress?.(reference.entries);
      }
    } catch (error) {
      // Records after a damaged entry cannot be derived, so the comparison ends here.
      if (!(error instanceof MintmarkError) || error.code !== "store_corrupt") throw error;
      report(error.message);
    }
    if (problems.length === 0) await compareRest(store, reference, report);
    onProgress?.(reference.entries);
    const { entries: journalEntries, roots, totals } = reference;
    const batches = roots.countValidium + roots.countRollup;
    const state = { ...roots, commitment: stateCommitment(settlement, roots) };
    const { vaults, mints, tokens } = totals;
    return { journalEntries, vaults, batches, mints, tokens, state, problems };
  });
}

/** Reads ahead what later entries change. Leaves damage to the following read. */
export async function foreseen(store: Pick<StoreReader, "entries">): Promise<Foreseen> {
  const voidings = new Map<string, number>();
  const adoptions: Foreseen["adoptions"][number][] = [];
  let keysForgotten = 0;
  for await (const entry of readJournalKinds(store, [
    "slotsVoided",
    "slotsLeftOut",
    "transfersTakenBack",
    "idempotencyForgotten",
    "historyAdopted",
  ])) {
    if (entry.kind === "idempotencyForgotten") {
      keysForgotten = entry.upTo;
      continue;
    }
    if (entry.kind === "historyAdopted") {
      adoptions.push(entry.firsts);
      continue;
    }
    const name = batchName({ mode: "zk-rollup", ...entry });
    voidings.set(name, (voidings.get(name) ?? 0) + 1);
  }
  return { voidings, adoptions, keysForgotten };
}

/** Compares records that an entry alone determines. */
async function compare(
  store: Pick<StoreReader, "getMany">,
  expected: readonly Expected[],
  report: (problem: string) => void,
) {
  const stored = await store.getMany(expected.map(({ key }) => key));
  for (const [i, { key, value, name }] of expected.entries()) {
    const record = stored[i];
    if (record === undefined) report(`${name} is missing (${key.toString("hex")})`);
    else if (!record.equals(value)) report(`${name} differs from the journal (${key.toString("hex")})`);
  }
}

/** A vault in the records; undefined when there is none. */
export async function storedVault(
  store: Pick<StoreReader, "get">,
  { mode, batchNumber, slot }: VaultPlace,
): Promise<StoredVault | undefined> {
  const record = await store.get(keyOf.chunk(mode, batchNumber, Math.floor(slot / CHUNK_VAULTS)));
  return record && decodeChunk(record)[slot % CHUNK_VAULTS];
}

/** Compares the records that many entries determine, and the number of all others. */
async function compareRest(
  store: Pick<StoreReader, "entries">,
  reference: Reference,
  report: (problem: string) => void,
) {
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
  for (const { key, name } of settled.values()) report(`${name} is missing (${key.toString("hex")})`);
  for (const [name, prefix] of Object.entries(PREFIX)) {
    const expected = reference.countOf(prefix);
    const found = counts.get(prefix) ?? 0;
    if (expected !== null && found !== expected) report(`there are ${found} records of ${name}, not ${expected}`);
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
  /** At most 100; each names the record. */
  readonly problems: readonly string[];
}
