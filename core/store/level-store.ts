import type { AbstractSnapshot } from "abstract-level";
import { Level } from "level";
import { MintmarkError } from "../errors.ts";
import { Stack } from "../stack.ts";
import { journalFrom, journalLength } from "./journal.ts";
import {
  entriesMissing,
  type FolderUse,
  keepsMark,
  LevelFolder,
  notAJournal,
} from "./level-folder.ts";
import { LevelLock } from "./level-lock.ts";
import type { Database, Journal, KeyRange, Store, StoreOperation, StoreReader } from "./ports.ts";
import { HEAD_KEY, keyOf, PREFIX } from "./store-keys.ts";

const BINARY = { keyEncoding: "buffer", valueEncoding: "buffer" } as const;
/**
 * Most files that LevelDB keeps open. It maps each table, of 2 MB, into memory, so with its default
 * of 1,000 whoever reads a whole store holds a store's worth of memory.
 */
export const MAX_OPEN_FILES = 74; // The least that it takes: 64 tables, and 10 files besides
/**
 * Bytes of records that LevelDB gathers in memory before it writes a table: four times its default,
 * so that it merges tables a third as often. That merging was a third of a mint's CPU.
 */
const WRITE_BUFFER = 16 << 20;
/** A journal's keys ascend, so its tables stay as they are written: whoever reads it maps them. */
const JOURNAL_BUFFER = 2 << 20;
const OPEN_DATABASES = new WeakSet<Database>(); // Databases that an engine in this process has open

/** A store in a folder holds these besides its database. */
interface Held {
  readonly folder: LevelFolder;
  readonly lock: LevelLock;
}

/** The store on LevelDB, or on any other abstract-level database. */
export class LevelStore implements Store {
  readonly #db: Database;
  readonly #options: typeof BINARY & { readonly snapshot?: AbstractSnapshot };

  readonly #held: Held | null; // null for a database from the caller
  // Whether a write is durable when it resolves. If not, another journal has it.
  readonly #sync: boolean;

  private constructor(db: Database, held: Held | null, sync: boolean, snapshot?: AbstractSnapshot) {
    this.#db = db;
    this.#held = held;
    this.#sync = sync;
    this.#options = snapshot === undefined ? BINARY : { ...BINARY, snapshot };
  }

  /**
   * Opens a folder as LevelDB, or a database of the caller.
   *
   * @param createIfMissing - whether to create a store in an empty folder; a given database is
   *   never created
   * @throws MintmarkError `store_missing`, `store_locked` when another engine has it open,
   *   `store_mismatch` for another format or use, `store_corrupt` or `store_failed`
   */
  static async open(
    store: string | Database,
    createIfMissing: boolean,
    use: FolderUse = "store",
  ): Promise<LevelStore> {
    const sync = keepsMark(use);
    if (typeof store !== "string") return new LevelStore(await opened(store), null, sync);
    await using begun = new Stack();
    const folder = begun.use(
      await LevelFolder.open(store, createIfMissing, use).catch((error: unknown) => {
        throw error instanceof MintmarkError ? error : openingFailure(error);
      }),
    );
    const lock = begun.use(await guarded(LevelLock.take(folder.path)));
    const writeBufferSize = use === "journal" ? JOURNAL_BUFFER : WRITE_BUFFER;
    const options = { ...BINARY, maxOpenFiles: MAX_OPEN_FILES, writeBufferSize };
    const db = await opened(new Level<Buffer, Buffer>(folder.path, options));
    const level = new LevelStore(db, { folder, lock }, sync);
    begun.defer(() => db.close());
    lock.requireHeld();
    // LevelDB's background work would delete files that it does not know.
    lock.lost.addEventListener("abort", () => void db.close());
    await level.#compareMark(folder);
    begun.move();
    return level;
  }

  /** Opens a folder or a database as a store; returns a store unchanged. */
  static async of(named: string | Database | Store, createIfMissing: boolean): Promise<Store> {
    return typeof named === "object" && "atSnapshot" in named
      ? named
      : LevelStore.open(named, createIfMissing);
  }

  /** Compares the journal with the mark again: only now are LevelDB's tables readable. */
  async #compareMark(folder: LevelFolder): Promise<void> {
    const { path, marked } = folder;
    const length = await journalLength(this);
    if (marked !== null && length < marked) throw entriesMissing(path, length, marked);
    if (this.#sync) await guarded(folder.beginMark(length));
  }

  get lost(): AbortSignal | undefined {
    return this.#held?.lock.lost;
  }

  async get(key: Buffer): Promise<Buffer | undefined> {
    return guarded(this.#db.get<Buffer, Buffer>(key, this.#options));
  }

  async getMany(keys: Buffer[]): Promise<(Buffer | undefined)[]> {
    return keys.length === 0 ? [] : guarded(this.#db.getMany<Buffer, Buffer>(keys, this.#options));
  }

  async *entries(range: KeyRange): AsyncGenerator<[Buffer, Buffer]> {
    const iterator = this.#db.iterator<Buffer, Buffer>({ ...range, ...this.#options });
    try {
      for (;;) {
        const chunk = await guarded(iterator.nextv(256));
        if (chunk.length === 0) return;
        yield* chunk;
      }
    } finally {
      await iterator.close();
    }
  }

  async atSnapshot<T>(body: (store: StoreReader) => Promise<T>): Promise<T> {
    const snapshot = this.#db.snapshot();
    try {
      return await body(new LevelStore(this.#db, this.#held, this.#sync, snapshot));
    } finally {
      await snapshot.close();
    }
  }

  /**
   * Writes a chained batch: with an array, an operation would cost the event loop four times as
   * much.
   */
  async write(operations: readonly StoreOperation[]): Promise<void> {
    const batch = this.#db.batch();
    let entry: Buffer | undefined;
    for (const operation of operations) {
      if (operation.key[0] === PREFIX.journal) entry = operation.key;
      if (operation.type === "put")
        batch.put<Buffer, Uint8Array>(operation.key, operation.value, BINARY);
      else batch.del(operation.key, BINARY);
    }
    // LevelDB has `sync`, which abstract-level's types lack. Without it a write survives the
    // process, not the machine.
    await guarded(batch.write({ sync: this.#sync } as object));
    if (entry !== undefined && this.#sync)
      this.#held?.folder.mark(1 + Number(entry.readBigUInt64BE(1)));
    // The check follows the write: a process that opened the folder later has read it.
    this.#held?.lock.requireHeld();
  }

  async raiseFormat(): Promise<void> {
    await guarded(this.#held?.folder.raiseFormat() ?? Promise.resolve());
  }

  async close(): Promise<void> {
    await guarded(this.#db.close());
    OPEN_DATABASES.delete(this.#db);
    this.#held?.lock[Symbol.dispose]();
    await this.#held?.folder[Symbol.asyncDispose]();
  }
}

async function opened(db: Database): Promise<Database> {
  if (OPEN_DATABASES.has(db)) throw new MintmarkError("store_locked");
  OPEN_DATABASES.add(db);
  try {
    await db.open();
  } catch (error) {
    OPEN_DATABASES.delete(db);
    throw openingFailure(error);
  }
  return db;
}

async function guarded<T>(operation: Promise<T>): Promise<T> {
  try {
    return await operation;
  } catch (cause) {
    throw new MintmarkError(
      codeOf(cause) === "LEVEL_CORRUPTION" ? "store_corrupt" : "store_failed",
      undefined,
      {
        cause,
      },
    );
  }
}

function openingFailure(cause: unknown): MintmarkError {
  const inner = cause instanceof Error && cause.cause !== undefined ? cause.cause : cause;
  const code = codeOf(inner);
  if (code === "LEVEL_LOCKED") return new MintmarkError("store_locked", undefined, { cause });
  if (code === "LEVEL_CORRUPTION") return new MintmarkError("store_corrupt", undefined, { cause });
  const detail = `The store could not be opened: ${inner instanceof Error ? inner.message : inner}.`;
  return new MintmarkError(
    "store_failed",
    `${detail} Check the folder's permissions and its disk.`,
    { cause },
  );
}

function codeOf(error: unknown): unknown {
  return typeof error === "object" && error !== null && "code" in error ? error.code : undefined;
}

/**
 * A journal in its own LevelDB folder, for example on another disk, or in another abstract-level
 * database.
 *
 * @example
 * await using journal = await LevelJournal.open("/other-disk/journal");
 * const engine = await openEngine({ ...options, journal });
 */
export class LevelJournal implements Journal, AsyncDisposable {
  readonly #store: LevelStore;
  #length: number;

  private constructor(store: LevelStore, length: number) {
    this.#store = store;
    this.#length = length;
  }

  /**
   * Rejects with `store_locked` while another process has it open, with `store_mismatch` for a
   * store, with `store_corrupt` or `store_failed`.
   */
  static async open(journal: string | Database): Promise<LevelJournal> {
    const store = await LevelStore.open(journal, true, "journal");
    if ((await store.get(HEAD_KEY)) === undefined)
      return new LevelJournal(store, await journalLength(store));
    await store.close();
    throw notAJournal("The journal");
  }

  async length(): Promise<number> {
    return this.#length;
  }

  async append(length: number, entries: readonly Uint8Array[]): Promise<void> {
    if (length !== this.#length)
      throw new MintmarkError(
        "store_mismatch",
        `The journal holds ${this.#length} entries, not ${length}.`,
      );
    await this.#store.raiseFormat();
    await this.#store.write(
      entries.map((value, i) => ({ type: "put", key: keyOf.journal(length + i), value })),
    );
    this.#length += entries.length;
  }

  async *read(from: number): AsyncGenerator<Uint8Array, void, void> {
    for await (const [, entry] of this.#store.entries(journalFrom(from))) yield entry;
  }

  close(): Promise<void> {
    return this.#store.close();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}
