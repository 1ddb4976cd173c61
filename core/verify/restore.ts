import { MintmarkError } from "../errors.ts";
import { KzgThread } from "../protocol/kzg/kzg-thread.ts";
import { FORMAT_VERSION, formatRecord, requireFormat } from "../store/format.ts";
import { newSecrets } from "../store/genesis.ts";
import { decodeEntry } from "../store/journal.ts";
import { holdsStore } from "../store/level-folder.ts";
import { LevelStore } from "../store/level-store.ts";
import type { Database, Journal, Store, StoreOperation } from "../store/ports.ts";
import { keyOf } from "../store/store-keys.ts";
import type { CommitToBlob } from "./reference-derive.ts";
import { recordsIn, restoreRecords, unrestorable } from "./restore-records.ts";
import { PROGRESS_EVERY, type VerifyOptions } from "./verify.ts";
import { restoreOnThread } from "./verify-thread.ts";

/** Options of {@link restoreStore}. A store whose restoring was stopped is useless. */
export type RestoreOptions = VerifyOptions;

const SHORT = 1 << 20; // Bytes of a journal
const COPYING = 0.05; // The part of the time that the journal's copy takes

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
    const length = await journal.length();
    const { onProgress = () => {}, onShare = () => {} } = options;
    let sequence = 0;
    let copied = 0;
    for await (const entry of journal.read(0)) {
      options.signal?.throwIfAborted();
      await records.put([{ type: "put", key: keyOf.journal(sequence++), value: entry }]);
      copied += entry.length;
      if (sequence % PROGRESS_EVERY === 0) onShare((COPYING * sequence) / length);
    }
    await records.flush();
    const commit: CommitToBlob = (blob) => kzg.commitment(blob);
    const following = {
      ...options,
      onShare: (share: number) => onShare(COPYING + share * (1 - COPYING)),
    };
    // The thread would take longer to start than a short journal takes.
    const restore = copied > SHORT ? restoreOnThread : restoreRecords;
    const entries = await restore(target, following, commit);
    onProgress(entries);
    onShare(1);
    return entries;
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
  throw unrestorable("it is empty");
}

function notEmpty(): MintmarkError {
  return new MintmarkError(
    "store_mismatch",
    "The new store already holds records; give an empty one.",
  );
}
