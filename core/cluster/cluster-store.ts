import { createHash } from "node:crypto";
import { MintmarkError } from "../errors.ts";
import { Stack } from "../stack.ts";
import { FORMAT_VERSION, formatOf, requireFormat, requireRecord } from "../store/format.ts";
import { genesisIn } from "../store/genesis.ts";
import { decodeEntry, readEntry } from "../store/journal.ts";
import { notOfCluster } from "../store/level-folder.ts";
import { LevelStore } from "../store/level-store.ts";
import type { KeyRange, Store, StoreOperation, StoreReader } from "../store/ports.ts";
import { FORMAT_KEY, HEAD_KEY, keyOf, POSITION_KEY, PREFIX } from "../store/store-keys.ts";
import type { SharedJournal } from "./ports.ts";

/** Number of the journal's entries in this store, and the SHA-256 of the last one. */
interface JournalPosition {
  readonly length: number;
  readonly digest: Buffer;
}

const NOTHING: JournalPosition = { length: 0, digest: Buffer.alloc(32) };

/**
 * One server's store in a cluster. A leader's write goes to the shared journal first, then here. A
 * standby takes its writes from the journal. So the store is never ahead of the journal. A power
 * cut may take its newest writes, because the journal has them.
 */
export class ClusterStore implements Store {
  readonly #local: LevelStore;
  readonly #journal: SharedJournal;
  readonly #folder: string;
  #position: JournalPosition;

  private constructor(
    folder: string,
    local: LevelStore,
    journal: SharedJournal,
    position: JournalPosition,
  ) {
    this.#folder = folder;
    this.#local = local;
    this.#journal = journal;
    this.#position = position;
  }

  /**
   * Opens a server's folder and compares it with the journal.
   *
   * @throws MintmarkError `store_mismatch` for the store of another journal, or one whose next
   *   entry was pruned; `store_locked`, `store_corrupt`, `store_failed`
   */
  static async open(folder: string, journal: SharedJournal): Promise<ClusterStore> {
    await using opened = new Stack();
    const local = await LevelStore.open(folder, true, "replica").catch((error: unknown) => {
      throw withAdvice(error);
    });
    opened.defer(() => local.close());
    let position = await readPosition(local, folder);
    if (position.length === 0 && (await journal.status()).pruned > 0)
      position = await fill(local, folder, journal);
    await requireSameJournal(folder, journal, position);
    opened.move();
    return new ClusterStore(folder, local, journal, position);
  }

  /** Number of the journal's entries in this store. */
  get length(): number {
    return this.#position.length;
  }

  /**
   * Whether this version reads the records: not while `beginJournal` is under way, and not before
   * the first leader of this version has brought them up to its format.
   */
  async isReadable(): Promise<boolean> {
    if ((await this.#local.get(HEAD_KEY)) === undefined) return false;
    const { entry } = await readEntry(this.#local, 0);
    return (await formatOf(this.#local, genesisIn(entry).formatVersion)) === FORMAT_VERSION;
  }

  get lost(): AbortSignal | undefined {
    return this.#local.lost;
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

  atSnapshot<T>(body: (store: StoreReader) => Promise<T>): Promise<T> {
    return this.#local.atSnapshot(body);
  }

  /**
   * The leader's write. Rejects with `not_leader`, and changes nothing, when another server leads.
   */
  async write(operations: readonly StoreOperation[]): Promise<void> {
    const entry = encodeWrites(operations);
    await this.#journal.append(this.#position.length, [entry]);
    await this.#put(operations, entry);
  }

  /**
   * Applies the journal's next entries in order, up to a length. Calls `applied` after each one.
   *
   * @throws MintmarkError `store_mismatch` when the journal no longer holds this store's last entry
   */
  async follow(
    to: number,
    applied: (operations: readonly StoreOperation[]) => void,
    signal?: AbortSignal,
  ) {
    const { length, digest } = this.#position;
    if (to <= length) return;
    let position = Math.max(0, length - 1);
    for await (const entry of this.#journal.read(position)) {
      signal?.throwIfAborted();
      // Reads this store's last entry again. A database that took over may lack it and hold another
      // one in its place.
      if (position < length && !digestOf(entry).equals(digest)) throw otherJournal(this.#folder);
      if (position >= length) {
        const operations = decodeWrites(
          Buffer.from(entry.buffer, entry.byteOffset, entry.byteLength),
        );
        requireKnown(operations);
        await this.#put(operations, entry);
        applied(operations);
      }
      position++;
      if (position >= to) return;
    }
  }

  /**
   * Throws `store_mismatch` unless the journal ends with this store's last entry. A leader appends
   * after it.
   */
  async requireEnd(length: number): Promise<void> {
    if (length !== this.#position.length) throw otherJournal(this.#folder);
    await this.requireHeld();
  }

  /** Throws `store_mismatch` unless the journal holds this store's last entry. */
  async requireHeld(): Promise<void> {
    await requireSameJournal(this.#folder, this.#journal, this.#position);
  }

  /**
   * Writes a snapshot of this store to the journal, so that the journal can be pruned. Writes go on
   * meanwhile.
   */
  async keepSnapshot(): Promise<void> {
    await this.#local.atSnapshot(async (snapshot) => {
      const { length } = await readPosition(snapshot, this.#folder);
      await this.#journal.keepSnapshot(length, partsOf(snapshot, [HEAD_KEY, POSITION_KEY]));
    });
  }

  /** Does not close the folder: the server keeps it when its role changes. See {@link release}. */
  async close(): Promise<void> {}

  async release(): Promise<void> {
    await this.#local.close();
  }

  async #put(operations: readonly StoreOperation[], entry: Uint8Array): Promise<void> {
    const position = { length: this.#position.length + 1, digest: digestOf(entry) };
    // From now on, earlier versions refuse the folder.
    if (position.length === 1 || operations.some(({ key }) => key[0] === PREFIX.format))
      await this.#local.raiseFormat();
    await this.#local.write([
      ...operations,
      { type: "put", key: POSITION_KEY, value: positionBytes(position) },
    ]);
    this.#position = position;
  }
}

const PART_BYTES = 1 << 20; // Approximate bytes of one part of a snapshot

/**
 * A store as writes.
 *
 * @param last - the records that make a folder a store, which come last
 */
export async function* partsOf(
  store: StoreReader,
  last: readonly Buffer[],
): AsyncGenerator<Uint8Array, void, void> {
  let operations: StoreOperation[] = [];
  let bytes = 0;
  // The format's records come first, so that a server of another version refuses before it writes.
  for (const key of [FORMAT_KEY, keyOf.journal(0)]) {
    const value = await store.get(key);
    if (value !== undefined) operations.push({ type: "put", key, value });
  }
  for await (const [key, value] of store.entries({})) {
    if ([HEAD_KEY, POSITION_KEY].some((each) => each.equals(key))) continue;
    operations.push({ type: "put", key, value });
    bytes += key.length + value.length;
    if (bytes < PART_BYTES) continue;
    yield encodeWrites(operations);
    operations = [];
    bytes = 0;
  }
  for (const key of last) {
    const value = await store.get(key);
    if (value !== undefined) operations.push({ type: "put", key, value });
  }
  yield encodeWrites(operations);
}

/** Fills an empty store from the journal's snapshot. */
async function fill(
  store: LevelStore,
  folder: string,
  journal: SharedJournal,
): Promise<JournalPosition> {
  const parts = await journal.snapshot();
  if (parts === null)
    throw new MintmarkError("store_mismatch", "The journal was pruned, and it has no snapshot.");
  let isCleared = false;
  for await (const part of parts) {
    const operations = decodeWrites(Buffer.from(part));
    requireKnown(operations);
    if (!isCleared) await clear(store);
    isCleared = true;
    await store.write(operations);
  }
  return readPosition(store, folder);
}

/** Removes what an interrupted filling left. */
async function clear(store: LevelStore): Promise<void> {
  await store.raiseFormat();
  let left: StoreOperation[] = [];
  for await (const [key] of store.entries({})) {
    if (left.push({ type: "del", key }) < 4_096) continue;
    await store.write(left);
    left = [];
  }
  await store.write(left);
}

const GENESIS_KEY = keyOf.journal(0);

/** Throws `store_mismatch` for a write that tells of a format which this version cannot read. */
function requireKnown(operations: readonly StoreOperation[]): void {
  const valueAt = (known: Buffer) => {
    const found = operations.find(({ key }) => key[0] === known[0] && known.equals(key));
    return found?.type === "put" ? Buffer.from(found.value) : undefined;
  };
  const [record, genesis] = [valueAt(FORMAT_KEY), valueAt(GENESIS_KEY)];
  const [name, kept] = ["The cluster's journal", "Nothing of that format was written."];
  if (record !== undefined) requireRecord(record, name, kept);
  else if (genesis !== undefined)
    requireFormat(name, genesisIn(decodeEntry(0, genesis).entry).formatVersion, undefined, kept);
}

async function readPosition(store: StoreReader, folder: string): Promise<JournalPosition> {
  const bytes = await store.get(POSITION_KEY);
  if (bytes?.length === 40)
    return { length: Number(bytes.readBigUInt64BE(0)), digest: bytes.subarray(8) };
  if (bytes !== undefined)
    throw new MintmarkError("store_corrupt", "The store's position in the journal is damaged.");
  if ((await store.get(HEAD_KEY)) === undefined) return NOTHING;
  throw notOfCluster(folder);
}

/** Each entry of a server's folder is in the journal, so the folder needs no copy. */
function withAdvice(error: unknown): unknown {
  if (!(error instanceof MintmarkError) || error.code !== "store_corrupt") return error;
  const advice =
    "A server of a cluster needs no copy: set the folder aside, and start with an empty one, " +
    "which the journal fills.";
  return new MintmarkError("store_corrupt", `${error.message} ${advice}`, { cause: error });
}

async function requireSameJournal(
  folder: string,
  journal: SharedJournal,
  { length, digest }: JournalPosition,
): Promise<void> {
  if (length === 0) return;
  const last = await journal.entry(length - 1);
  if (last !== null && digestOf(last).equals(digest)) return;
  const { pruned } = await journal.status();
  if (last !== null || length > pruned) throw otherJournal(folder);
  const detail = `The store in ${folder} ends at entry ${length}, and the journal begins at entry ${pruned}.`;
  throw new MintmarkError(
    "store_mismatch",
    `${detail} Set the folder aside, and start with an empty one.`,
  );
}

function otherJournal(folder: string): MintmarkError {
  const detail =
    `The store in ${folder} holds entries that the cluster's journal lacks. If PostgreSQL promoted a standby that lacks ` +
    "them, bring the former primary back. If that is impossible, keep this folder, because only it holds those mints, " +
    "and start with an empty one. If PostgreSQL changed nothing, MINTMARK_JOURNAL names another cluster's journal.";
  return new MintmarkError("store_mismatch", detail);
}

function digestOf(entry: Uint8Array): Buffer {
  return createHash("sha256").update(entry).digest();
}

function positionBytes({ length, digest }: JournalPosition): Buffer {
  const bytes = Buffer.alloc(40);
  bytes.writeBigUInt64BE(BigInt(length), 0);
  digest.copy(bytes, 8);
  return bytes;
}

// Bytes before each operation's key: whether it puts, and the lengths of key and value
const HEADER = 7;

/**
 * Encodes one atomic write. Each operation is `put:u8 key:u16 value:u32`, big-endian, then key and
 * value. Inverse of {@link decodeWrites}.
 */
export function encodeWrites(operations: readonly StoreOperation[]): Buffer {
  let length = 0;
  for (const one of operations)
    length += HEADER + one.key.length + (one.type === "put" ? one.value.length : 0);
  const bytes = Buffer.allocUnsafe(length);
  let at = 0;
  for (const one of operations) {
    const value = one.type === "put" ? one.value : null;
    bytes[at] = value === null ? 0 : 1;
    bytes.writeUInt16BE(one.key.length, at + 1);
    bytes.writeUInt32BE(value?.length ?? 0, at + 3);
    bytes.set(one.key, at + HEADER);
    if (value !== null) bytes.set(value, at + HEADER + one.key.length);
    at += HEADER + one.key.length + (value?.length ?? 0);
  }
  return bytes;
}

/**
 * Decodes {@link encodeWrites}. Keys and values share the bytes' memory. Throws `store_corrupt`.
 */
export function decodeWrites(bytes: Buffer): StoreOperation[] {
  const operations: StoreOperation[] = [];
  let at = 0;
  while (at < bytes.length) {
    if (bytes.length - at < HEADER) throw damaged();
    const kind = bytes[at];
    const keyEnd = at + HEADER + bytes.readUInt16BE(at + 1);
    const end = keyEnd + bytes.readUInt32BE(at + 3);
    const key = bytes.subarray(at + HEADER, keyEnd);
    if (end > bytes.length || key.length === 0 || (kind !== 1 && (kind !== 0 || end !== keyEnd)))
      throw damaged();
    operations.push(
      kind === 1 ? { type: "put", key, value: bytes.subarray(keyEnd, end) } : { type: "del", key },
    );
    at = end;
  }
  return operations;
}

function damaged(): MintmarkError {
  return new MintmarkError("store_corrupt", "An entry of the cluster's journal is damaged.");
}
