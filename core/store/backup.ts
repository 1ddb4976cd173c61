import { MintmarkError } from "../errors.ts";
import { requireInteger } from "../protocol/bounds.ts";
import { journalFrom, journalLength } from "./journal.ts";
import type { Journal, StoreReader } from "./ports.ts";
import { keyOf } from "./store-keys.ts";

const ENTRIES_AT_ONCE = 1_024; // Entries copied at once
/**
 * Most bytes of records that a copy writes at once, apart from the last record. LevelDB holds a
 * write three times, and makes one table of it however long it is, which whoever reads it maps.
 */
export const BYTES_AT_ONCE = 1 << 20;
const COPYING = 0.5; // The part of the time that the copy takes; its comparison takes the rest
/**
 * Last entries of a journal that must equal the store's. Ids in them are random, so another store's
 * differ.
 */
const ENTRIES_COMPARED = 256;

/** How far a copy has come. */
export interface Copied {
  readonly entries: number;
  readonly added: number;
}

/** Options of a copy. */
export interface CopyOptions {
  readonly signal?: AbortSignal | undefined;
  /** Called from time to time with the number of entries in the journal. */
  readonly onProgress?: (entries: number) => void;
  /** Called from time to time with the share of the work that is done, from 0 to 1. */
  readonly onShare?: (share: number) => void;
}

/**
 * Appends a store's missing entries to a backup, and compares the whole backup with the store's
 * journal.
 */
export async function backup(store: StoreReader, journal: Journal, how: CopyOptions = {}) {
  const copied = await bringUp(store, journal, how);
  await requireCopy(store, journal, how);
  return copied;
}

/**
 * Appends a store's missing entries to a journal. Throws `store_mismatch` unless that is a prefix.
 */
export async function bringUp(
  store: StoreReader,
  journal: Journal,
  { signal, onProgress, onShare }: CopyOptions = {},
) {
  const before = await requireBeginning(store, journal);
  const total = await journalLength(store);
  let length = before;
  let entries: Uint8Array[] = [];
  let bytes = 0;
  const append = async (): Promise<void> => {
    signal?.throwIfAborted();
    if (entries.length > 0) await answered(async () => journal.append(length, entries));
    length += entries.length;
    entries = [];
    bytes = 0;
    onProgress?.(length);
    onShare?.((COPYING * length) / total);
  };
  for await (const [, entry] of store.entries(journalFrom(before))) {
    bytes += entry.length;
    if (entries.push(entry) >= ENTRIES_AT_ONCE || bytes >= BYTES_AT_ONCE) await append();
  }
  await append();
  return { entries: length, added: length - before };
}

/** Throws `store_corrupt` unless a journal's entries equal the store's. */
async function requireCopy(
  store: StoreReader,
  journal: Journal,
  { signal, onShare }: CopyOptions = {},
): Promise<void> {
  const length = await journal.length();
  const copies = journal.read(0)[Symbol.asyncIterator]();
  let number = 0;
  for await (const [, entry] of store.entries(journalFrom(0))) {
    signal?.throwIfAborted();
    const { value: copy, done } = await copies.next();
    // The store has grown meanwhile.
    if (done === true) return;
    if (!entry.equals(copy))
      throw new MintmarkError("store_corrupt", `Entry ${number} of the copy is damaged.`);
    number++;
    if (number % ENTRIES_AT_ONCE === 0) onShare?.(COPYING + ((1 - COPYING) * number) / length);
  }
}

/** A journal's length. Throws unless it ends within the store's, with the same entries there. */
export async function requireBeginning(store: StoreReader, journal: Journal): Promise<number> {
  const length = await answered(async () => journal.length());
  requireInteger("the journal's length", length, 0, Number.MAX_SAFE_INTEGER);
  if (length === 0) return 0;
  if ((await store.get(keyOf.journal(length - 1))) === undefined) {
    throw new MintmarkError(
      "store_mismatch",
      "The journal is longer than the store's own: make a store from the journal.",
    );
  }
  let number = Math.max(0, length - ENTRIES_COMPARED);
  for (const entry of await answered(() => readUpTo(journal, number, length))) {
    const own = await store.get(keyOf.journal(number));
    if (own === undefined || !own.equals(entry))
      throw new MintmarkError(
        "store_mismatch",
        `Entry ${number} of the journal differs from this store's.`,
      );
    number++;
  }
  if (number < length)
    throw new MintmarkError("store_mismatch", `Entry ${number} of the journal is missing.`);
  return length;
}

async function readUpTo(journal: Journal, from: number, to: number): Promise<Uint8Array[]> {
  const entries: Uint8Array[] = [];
  for await (const entry of journal.read(from)) if (entries.push(entry) === to - from) break;
  return entries;
}

/** The journal's result; `store_failed` when it fails. */
export async function answered<T>(ask: () => Promise<T>): Promise<T> {
  try {
    return await ask();
  } catch (cause) {
    const detail =
      "The journal beside the store has failed. Open the engine again: it continues where the journal ends.";
    throw new MintmarkError("store_failed", detail, { cause });
  }
}
