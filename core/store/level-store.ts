import { mkdir, realpath } from "node:fs/promises";
import type { AbstractSnapshot } from "abstract-level";
import { Level } from "level";
import type { Database } from "../engine-types.ts";
import { MintmarkError } from "../errors.ts";
import type { KeyRange, Store, StoreOperation, StoreReader } from "../store-ports.ts";

const BINARY = { keyEncoding: "buffer", valueEncoding: "buffer" } as const;
/** Databases that an engine has open in this process; the file lock of LevelDB does this between processes. */
const OPEN_DATABASES = new WeakSet<Database>();

/** The store over LevelDB, or over any other abstract-level database. */
export class LevelStore implements Store {
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
  static async open(store: string | Database): Promise<LevelStore> {
    const db: Database = typeof store === "string" ? await inFolder(store) : store;
    if (OPEN_DATABASES.has(db)) throw new MintmarkError("store_locked");
    OPEN_DATABASES.add(db);
    try {
      await db.open();
    } catch (error) {
      OPEN_DATABASES.delete(db);
      throw openingFailure(error);
    }
    return new LevelStore(db);
  }

  /** A folder or a database as a store; a store as it is. */
  static async of(named: string | Database | Store): Promise<Store> {
    return typeof named === "object" && "frozen" in named ? named : LevelStore.open(named);
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

  async frozen<T>(body: (store: StoreReader) => Promise<T>): Promise<T> {
    const snapshot = this.#db.snapshot();
    try {
      return await body(new LevelStore(this.#db, snapshot));
    } finally {
      await snapshot.close();
    }
  }

  async write(operations: readonly StoreOperation[]): Promise<void> {
    await guarded(this.#write(operations));
  }

  /** A chained batch: given as an array, an operation costs the event loop four times as much. */
  async #write(operations: readonly StoreOperation[]): Promise<void> {
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

/** Within a process LevelDB's lock goes by the folder's name: under its real path, another spelling of it is not another store. */
async function inFolder(folder: string): Promise<Database> {
  try {
    await mkdir(folder, { recursive: true });
    return new Level<Buffer, Buffer>(await realpath(folder), BINARY);
  } catch (error) {
    throw openingFailure(error);
  }
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
