import { MintmarkError } from "../errors.ts";
import { requireInteger } from "../protocol/bounds.ts";
import type { Journal, KeyRange, Store, StoreOperation, StoreReader } from "./ports.ts";
import { endOf, journalKey, PREFIX } from "./store-keys.ts";

/** Entries that are copied together. */
const ENTRIES_AT_ONCE = 1_024;
/** Entries before the journal's end that must be the store's: ids in them are random, so another store's are not. */
const ENTRIES_COMPARED = 256;
const JOURNAL = Buffer.from([PREFIX.journal]);

/**
 * A store whose journal is copied to another one: a write resolves when it is in the store, whole, and its entries of the journal are in
 * the other. So the other is never ahead of the store, and has everything that was acknowledged; what it lacks after a crash it gets
 * when it is opened.
 */
export class JournaledStore implements Store {
  readonly #store: Store;
  readonly #journal: Journal;
  /** Entries that the journal holds. */
  #length: number;

  private constructor(store: Store, journal: Journal, length: number) {
    this.#store = store;
    this.#journal = journal;
    this.#length = length;
  }

  /** Brings the journal up to the store; see {@link bringUp}. */
  static async open(store: Store, journal: Journal): Promise<JournaledStore> {
    return new JournaledStore(store, journal, (await bringUp(store, journal)).entries);
  }

  get(key: Buffer): Promise<Buffer | undefined> {
    return this.#store.get(key);
  }

  getMany(keys: Buffer[]): Promise<(Buffer | undefined)[]> {
    return this.#store.getMany(keys);
  }

  entries(range: KeyRange): AsyncIterable<[Buffer, Buffer]> {
    return this.#store.entries(range);
  }

  frozen<T>(body: (store: StoreReader) => Promise<T>): Promise<T> {
    return this.#store.frozen(body);
  }

  async write(operations: readonly StoreOperation[]): Promise<void> {
    await this.#store.write(operations);
    await this.#append(
      operations.flatMap((one) => (one.type === "put" && one.key[0] === JOURNAL[0] ? [one.value] : [])),
    );
  }

  close(): Promise<void> {
    return this.#store.close();
  }

  async #append(entries: readonly Uint8Array[]): Promise<void> {
    if (entries.length === 0) return;
    await answered(async () => this.#journal.append(this.#length, entries));
    this.#length += entries.length;
  }
}

/** What a journal holds after it was brought up. */
export interface Copied {
  readonly entries: number;
  /** Entries that it lacked. */
  readonly added: number;
}

/** How a copy is watched and stopped. */
export interface CopyOptions {
  readonly signal?: AbortSignal | undefined;
  /** Called now and then with the number of entries that the journal holds. */
  readonly onProgress?: (entries: number) => void;
}

/**
 * Appends what a journal lacks of a store's. The entries that both have must be the same: the newest are compared.
 *
 * @throws MintmarkError `store_mismatch` for a journal that is not the beginning of the store's own
 */
export async function bringUp(
  store: StoreReader,
  journal: Journal,
  { signal, onProgress }: CopyOptions = {},
): Promise<Copied> {
  const before = await answered(async () => journal.length());
  await requireBeginning(store, journal, before);
  let length = before;
  let entries: Uint8Array[] = [];
  const append = async (): Promise<void> => {
    signal?.throwIfAborted();
    if (entries.length > 0) await answered(async () => journal.append(length, entries));
    length += entries.length;
    entries = [];
    onProgress?.(length);
  };
  for await (const [, entry] of store.entries({ gte: journalKey(before), lt: endOf(JOURNAL) })) {
    if (entries.push(entry) >= ENTRIES_AT_ONCE) await append();
  }
  await append();
  return { entries: length, added: length - before };
}

/** Throws `store_corrupt` unless a journal's entries are those of the store, each of them. */
export async function requireCopy(store: StoreReader, journal: Journal, { signal }: CopyOptions = {}): Promise<void> {
  const copies = journal.read(0)[Symbol.asyncIterator]();
  let number = 0;
  for await (const [, entry] of store.entries({ gte: JOURNAL, lt: endOf(JOURNAL) })) {
    signal?.throwIfAborted();
    const { value: copy, done } = await copies.next();
    // The store has grown since.
    if (done === true) return;
    if (!entry.equals(copy)) throw new MintmarkError("store_corrupt", `Entry ${number} of the copy is damaged.`);
    number++;
  }
}

/** Whether a journal ends within the store's, and with the same entries as that has there. */
async function requireBeginning(store: StoreReader, journal: Journal, length: number): Promise<void> {
  requireInteger("the journal's length", length, 0, Number.MAX_SAFE_INTEGER);
  if (length === 0) return;
  if ((await store.get(journalKey(length - 1))) === undefined) {
    throw new MintmarkError(
      "store_mismatch",
      "The journal goes on after the store's end: make a store of the journal.",
    );
  }
  let number = Math.max(0, length - ENTRIES_COMPARED);
  for (const entry of await answered(() => readUpTo(journal, number, length))) {
    const own = await store.get(journalKey(number));
    if (own === undefined || !own.equals(entry)) {
      throw new MintmarkError("store_mismatch", `Entry ${number} of the journal is not that of this store.`);
    }
    number++;
  }
  if (number < length) throw new MintmarkError("store_mismatch", `Entry ${number} of the journal is missing.`);
}

async function readUpTo(journal: Journal, from: number, to: number): Promise<Uint8Array[]> {
  const entries: Uint8Array[] = [];
  for await (const entry of journal.read(from)) if (entries.push(entry) === to - from) break;
  return entries;
}

/** What the journal answers; `store_failed` when it fails. */
async function answered<T>(ask: () => Promise<T>): Promise<T> {
  try {
    return await ask();
  } catch (cause) {
    const detail = "The journal beside the store has failed. Open the engine again: it goes on where the journal ends.";
    throw new MintmarkError("store_failed", detail, { cause });
  }
}
