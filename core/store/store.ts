import type { AbstractSnapshot } from "abstract-level";
import { Level } from "level";
import type { Database } from "../engine-types.ts";
import { MintmarkError } from "../errors.ts";

/** One change of one key. */
export type Operation =
  | { readonly type: "put"; readonly key: Buffer; readonly value: Uint8Array }
  | { readonly type: "del"; readonly key: Buffer };

/** Bounds of a scan, each optional, over the order of the bytes. */
export interface Range {
  readonly gte?: Buffer;
  readonly gt?: Buffer;
  readonly lte?: Buffer;
  readonly lt?: Buffer;
  readonly reverse?: boolean;
  readonly limit?: number;
}

const BINARY = { keyEncoding: "buffer", valueEncoding: "buffer" } as const;
/** Databases that an engine has open in this process; the file lock of LevelDB does this between processes. */
const OPEN_DATABASES = new WeakSet<Database>();

/**
 * The store: binary keys and values in their byte order, one durable atomic write at a time. A failure of the database is never read
 * as "no such key": it rejects with `store_failed`, damaged files with `store_corrupt`.
 */
export class Store {
  readonly #db: Database;
  readonly #options: typeof BINARY & { readonly snapshot?: AbstractSnapshot };

  private constructor(db: Database, snapshot?: AbstractSnapshot) {
    this.#db = db;
    this.#options = snapshot === undefined ? BINARY : { ...BINARY, snapshot };
  }

  /**
   * Opens a folder as LevelDB, or a database that was given.
   * Rejects with `store_locked` when another engine has it open, with `store_corrupt` or `store_failed` otherwise.
   */
  static async open(store: string | Database): Promise<Store> {
    const db: Database = typeof store === "string" ? new Level<Buffer, Buffer>(store, BINARY) : store;
    if (OPEN_DATABASES.has(db)) throw new MintmarkError("store_locked");
    OPEN_DATABASES.add(db);
    try {
      await db.open();
    } catch (error) {
      OPEN_DATABASES.delete(db);
      throw openingFailure(error);
    }
    return new Store(db);
  }

  async get(key: Buffer): Promise<Buffer | undefined> {
    return guarded(this.#db.get<Buffer, Buffer>(key, this.#options));
  }

  /** In the order of the keys; undefined for those that are not there. */
  async getMany(keys: Buffer[]): Promise<(Buffer | undefined)[]> {
    return keys.length === 0 ? [] : guarded(this.#db.getMany<Buffer, Buffer>(keys, this.#options));
  }

  /** The entries of a range in order, read from one snapshot. */
  async *entries(range: Range): AsyncGenerator<[Buffer, Buffer]> {
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

  /** Calls `body` with the store as it is now; what is written meanwhile does not show in it. */
  async frozen<T>(body: (store: Pick<Store, "get" | "getMany" | "entries">) => Promise<T>): Promise<T> {
    const snapshot = this.#db.snapshot();
    try {
      return await body(new Store(this.#db, snapshot));
    } finally {
      await snapshot.close();
    }
  }

  /** All operations or none, on disk when it resolves. */
  async write(operations: Operation[]): Promise<void> {
    await guarded(this.#write(operations));
  }

  /** A chained batch: given as an array, an operation costs the event loop four times as much. */
  async #write(operations: Operation[]): Promise<void> {
    const batch = this.#db.batch();
    for (const operation of operations) {
      if (operation.type === "put") batch.put<Buffer, Uint8Array>(operation.key, operation.value, BINARY);
      else batch.del(operation.key, BINARY);
    }
    // LevelDB takes `sync`, which abstract-level's own types do not know: without it a write survives the process, not the machine.
    await batch.write({ sync: true } as object);
  }

  async close(): Promise<void> {
    await guarded(this.#db.close());
    OPEN_DATABASES.delete(this.#db);
  }
}

/** The first key after every key that starts with `prefix`. */
export function endOf(prefix: Buffer): Buffer {
  const end = Buffer.from(prefix);
  let last = end.length - 1;
  while (end[last] === 0xff) last--;
  end[last] = (end[last] ?? 0) + 1;
  return end.subarray(0, last + 1);
}

async function guarded<T>(operation: Promise<T>): Promise<T> {
  try {
    return await operation;
  } catch (error) {
    throw codeOf(error) === "LEVEL_CORRUPTION"
      ? new MintmarkError("store_corrupt", undefined, { cause: error })
      : new MintmarkError("store_failed", undefined, { cause: error });
  }
}

function openingFailure(error: unknown): MintmarkError {
  const inner = error instanceof Error && error.cause !== undefined ? error.cause : error;
  switch (codeOf(inner)) {
    case "LEVEL_LOCKED":
      return new MintmarkError("store_locked", undefined, { cause: error });
    case "LEVEL_CORRUPTION":
      return new MintmarkError("store_corrupt", undefined, { cause: error });
    default:
      return new MintmarkError("store_failed", "The store could not be opened.", { cause: error });
  }
}

function codeOf(error: unknown): unknown {
  return typeof error === "object" && error !== null && "code" in error ? error.code : undefined;
}
