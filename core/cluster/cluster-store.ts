import { createHash } from "node:crypto";
import { MintmarkError } from "../errors.ts";
import { LevelStore } from "../store/level-store.ts";
import type { KeyRange, Store, StoreOperation, StoreReader } from "../store/ports.ts";
import { HEAD_KEY, POSITION_KEY } from "../store/store-keys.ts";
import type { SharedJournal } from "./ports.ts";
import { decodeWrites, encodeWrites } from "./write-set.ts";

/** Entries of the journal that this store holds, and the SHA-256 of the last of them. */
interface Position {
  readonly length: number;
  readonly digest: Buffer;
}

const NOTHING: Position = { length: 0, digest: Buffer.alloc(32) };

/**
 * One server's store in a cluster. A leader's write goes to the shared journal first, and then here; a standby takes writes out of the
 * journal. So the store is never ahead of the journal, and a power cut may take its newest writes: the journal has them.
 */
export class ClusterStore implements Store {
  readonly #local: LevelStore;
  readonly #journal: SharedJournal;
  #position: Position;

  private constructor(local: LevelStore, journal: SharedJournal, position: Position) {
    this.#local = local;
    this.#journal = journal;
    this.#position = position;
  }

  /**
   * Opens a server's folder and holds it against the journal.
   *
   * @throws MintmarkError `store_mismatch` for the store of another journal, or one that the journal no longer reaches back to;
   * `store_locked`, `store_corrupt`, `store_failed`
   */
  static async open(folder: string, journal: SharedJournal): Promise<ClusterStore> {
    const local = await LevelStore.open(folder, true, "process");
    try {
      const position = await readPosition(local);
      await requireSameJournal(folder, journal, position);
      return new ClusterStore(local, journal, position);
    } catch (error) {
      await local.close();
      throw error;
    }
  }

  /** Entries of the journal that are in this store. */
  get length(): number {
    return this.#position.length;
  }

  get(key: Buffer): Promise<Buffer | undefined> {
    return this.#local.get(key);
  }

  getMany(keys: Buffer[]): Promise<(Buffer | undefined)[]> {
    return this.#local.getMany(keys);
  }

  entries(range: KeyRange): AsyncIterable<[Buffer, Buffer]> {
    return this.#local.entries(range);
  }

  frozen<T>(body: (store: StoreReader) => Promise<T>): Promise<T> {
    return this.#local.frozen(body);
  }

  /** The leader's write. Rejects with `not_leader` when another server leads, and has changed nothing then. */
  async write(operations: readonly StoreOperation[]): Promise<void> {
    const entry = encodeWrites(operations);
    await this.#journal.append(this.#position.length, [entry]);
    await this.#put(operations, entry);
  }

  /** Takes in the journal's next entries, in order, up to a length. Calls `applied` after each one. */
  async follow(
    to: number,
    applied: (operations: readonly StoreOperation[]) => void,
    signal?: AbortSignal,
  ): Promise<void> {
    if (to <= this.#position.length) return;
    for await (const entry of this.#journal.read(this.#position.length)) {
      signal?.throwIfAborted();
      const operations = decodeWrites(Buffer.from(entry.buffer, entry.byteOffset, entry.byteLength));
      await this.#put(operations, entry);
      applied(operations);
      if (this.#position.length >= to) return;
    }
  }

  /** The engine's end is not the store's: a server keeps it open when its role changes. See {@link release}. */
  async close(): Promise<void> {}

  /** Closes the folder. */
  async release(): Promise<void> {
    await this.#local.close();
  }

  async #put(operations: readonly StoreOperation[], entry: Uint8Array): Promise<void> {
    const position = { length: this.#position.length + 1, digest: digestOf(entry) };
    await this.#local.write([...operations, { type: "put", key: POSITION_KEY, value: positionBytes(position) }]);
    this.#position = position;
  }
}

async function readPosition(store: StoreReader): Promise<Position> {
  const bytes = await store.get(POSITION_KEY);
  if (bytes?.length === 40) return { length: Number(bytes.readBigUInt64BE(0)), digest: bytes.subarray(8) };
  if (bytes !== undefined) throw new MintmarkError("store_corrupt", "The store's position in the journal is damaged.");
  if ((await store.get(HEAD_KEY)) === undefined) return NOTHING;
  const detail = "This store did not come from the cluster's journal. Give each server of a cluster an empty folder.";
  throw new MintmarkError("store_mismatch", detail);
}

/** The last entry that the store holds is the journal's own. */
async function requireSameJournal(folder: string, journal: SharedJournal, { length, digest }: Position): Promise<void> {
  if (length === 0) return;
  const last = await journal.entry(length - 1);
  if (last !== null && digestOf(last).equals(digest)) return;
  const { pruned } = await journal.status();
  const what =
    last !== null
      ? "belongs to another journal"
      : length <= pruned
        ? `ends at entry ${length}, and the journal begins at entry ${pruned}`
        : `holds ${length} entries, which the journal lacks: it was restored from an old copy, or a standby without them took over`;
  throw new MintmarkError(
    "store_mismatch",
    `The store in ${folder} ${what}. Set the folder aside and start with an empty one.`,
  );
}

function digestOf(entry: Uint8Array): Buffer {
  return createHash("sha256").update(entry).digest();
}

function positionBytes({ length, digest }: Position): Buffer {
  const bytes = Buffer.alloc(40);
  bytes.writeBigUInt64BE(BigInt(length), 0);
  digest.copy(bytes, 8);
  return bytes;
}
