import { MintmarkError } from "../../errors.ts";
import { type Kzg, KzgThread } from "../../protocol/kzg/kzg-thread.ts";
import type { VaultPlace } from "../../protocol/vault.ts";
import { FORMAT_VERSION, formatRecord, requireFormat } from "../../store/format.ts";
import { newSecrets, readSeed } from "../../store/genesis.ts";
import { decodeEntry, readJournal } from "../../store/journal.ts";
import { LevelStore } from "../../store/level-store.ts";
import type { Database, Journal, Store, StoreOperation } from "../../store/ports.ts";
import { HEAD_KEY, keyOf } from "../../store/store-keys.ts";
import { Reference } from "./reference.ts";
import type { Expected } from "./reference-records.ts";
import { foreseen, storedVault } from "./verify.ts";

/** Options of {@link restoreStore}. */
export interface RestoreOptions {
  /** Stops between two entries; the store is then useless. */
  readonly signal?: AbortSignal | undefined;
  /** Called from time to time with the number of derived journal entries. */
  readonly onProgress?: (entries: number) => void;
}

const RECORDS_AT_ONCE = 4_096;

/**
 * Creates a store from a journal: copies the journal and derives every record with the second implementation, which
 * `verify` uses too. Resolves with the number of entries. An engine on the store continues with the same roots.
 *
 * The store gets a new random secret: it refuses earlier cursors, and each webhook signs with another secret.
 *
 * @param store - empty; closed when this settles. Its head is written last, so the engine refuses a partial store
 * @throws MintmarkError `store_mismatch` when the store is not empty or the journal has another format;
 * `store_corrupt` for an invalid journal
 *
 * @example
 * await restoreStore(await LevelJournal.open("/other-disk/journal"), "./data");
 */
export async function restoreStore(
  journal: Journal,
  store: string | Database | Store,
  options: RestoreOptions = {},
): Promise<number> {
  const target = await LevelStore.of(store, true);
  const kzg = new KzgThread();
  try {
    for await (const _ of target.entries({ limit: 1 }))
      throw new MintmarkError("store_mismatch", "The new store already holds records; give an empty one.");
    const records = recordsIn(target);
    await records.put(newSecrets());
    let sequence = 0;
    for await (const entry of journal.read(0)) {
      options.signal?.throwIfAborted();
      if (sequence === 0) await records.put(formatOver(entry));
      await records.put([{ type: "put", key: keyOf.journal(sequence++), value: entry }]);
    }
    await records.flush();
    return await derive(target, records, kzg, options);
  } finally {
    await kzg.close();
    await target.close();
  }
}

async function derive(
  store: Store,
  records: ReturnType<typeof recordsIn>,
  kzg: Kzg,
  { signal, onProgress }: RestoreOptions,
): Promise<number> {
  const report = (problem: string): never => {
    throw new MintmarkError("store_corrupt", `The journal gives no store: ${problem}.`);
  };
  const commit = (blob: Uint8Array) => kzg.commitment(blob);
  const vaultAt = async (place: VaultPlace) => {
    await records.flush();
    return storedVault(store, place);
  };
  const sources = { seed: await readSeed(store), foreseen: await foreseen(store), commit, vaultAt };
  const reference = new Reference(report, sources);
  for await (const journaled of readJournal(store)) {
    signal?.throwIfAborted();
    await records.put((await reference.apply(journaled)).map(asPut));
    if (reference.entries % 1024 === 0) onProgress?.(reference.entries);
  }
  if (reference.entries === 0) report("it is empty");
  const last = await reference.finish();
  await records.put(last.filter(({ key }) => !key.equals(HEAD_KEY)).map(asPut));
  await records.flush();
  await store.write(last.filter(({ key }) => key.equals(HEAD_KEY)).map(asPut));
  onProgress?.(reference.entries);
  return reference.entries;
}

/** The new store's records have this version's format, whatever the journal's genesis says. Throws `store_mismatch`. */
function formatOver(first: Uint8Array): readonly StoreOperation[] {
  const { entry } = decodeEntry(0, first);
  if (entry.kind !== "genesis") return [];
  requireFormat("The journal", entry.formatVersion);
  return entry.formatVersion === FORMAT_VERSION ? [] : [formatRecord(FORMAT_VERSION)];
}

function asPut({ key, value }: Expected): StoreOperation {
  return { type: "put", key, value };
}

/** Buffered writes of records. */
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
