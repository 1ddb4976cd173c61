import { crc32 } from "node:zlib";
import { MintmarkError } from "../errors.ts";
import { RECORD_VERSION } from "./binary.ts";

// Shards of the index of tokens; the record is sorted by shard. A power of two.
export const SHARDS = 256;

/**
 * The place of every ERC-721 token, in memory: a table from a token's 32-bit hash to its vault, 8
 * bytes a place, 10.7 to 16 bytes a token. Tokens can share a hash, so a result is a candidate that
 * the caller must check in the vault. A hash without result proves that the token does not exist;
 * that is the usual answer to a mint, and it reads nothing.
 *
 * The low byte of the hash selects one of 256 shards. They grow one by one, so no growth takes
 * long. In a shard a token's place is proportional to the rest of its hash, or the next free one
 * after it; so growing walks through memory in order.
 *
 * ```
 *   shard  [ hash ref | 0 0 | hash ref | hash ref | 0 0 | … ]      ref 0: free
 * ```
 */
export class TokenIndex {
  readonly #shards: Uint32Array[] = [];
  readonly #counts = new Uint32Array(SHARDS);
  #atHome = new Uint32Array(64);

  /** @param expected - number of tokens to reserve space for */
  constructor(expected = 0) {
    const capacity = Math.max(MIN_CAPACITY, Math.ceil((expected / SHARDS) * (1 / START_LOAD)));
    for (let i = 0; i < SHARDS; i++) this.#shards.push(new Uint32Array(2 * capacity));
  }

  /** The refs of all tokens with this hash; null when there are none. */
  candidates(hash: number): number[] | null {
    const shard = this.#shards[hash & (SHARDS - 1)] as Uint32Array;
    let found: number[] | null = null;
    for (let at = home(hash, shard); shard[at + 1] !== 0; at = next(at, shard)) {
      if (shard[at] !== hash) continue;
      found ??= [];
      found.push(shard[at + 1]!);
    }
    return found;
  }

  /**
   * The ref in each hash's own place; 0 proves that no token has the hash. The look-ups of this
   * loop do not wait for each other's memory. The result is valid until the next call.
   */
  refsAtHome(hashes: Uint32Array): Uint32Array {
    if (hashes.length > this.#atHome.length) this.#atHome = new Uint32Array(2 * hashes.length);
    const refs = this.#atHome;
    for (let i = 0; i < hashes.length; i++) {
      const hash = hashes[i]!;
      const shard = this.#shards[hash & (SHARDS - 1)] as Uint32Array;
      refs[i] = shard[home(hash, shard) + 1]!;
    }
    return refs;
  }

  /**
   * Returns whether the token is inserted: always, unless it must be the only one with its hash.
   *
   * @param ref - 1 to 2^32 - 1
   */
  insert(hash: number, ref: number, onlyOne = false): boolean {
    const number = hash & (SHARDS - 1);
    const shard = this.#withRoom(number);
    let at = home(hash, shard);
    for (; shard[at + 1] !== 0; at = next(at, shard))
      if (onlyOne && shard[at] === hash) return false;
    shard[at] = hash;
    shard[at + 1] = ref;
    this.#counts[number] = this.#counts[number]! + 1;
    return true;
  }

  /**
   * {@link insert} for tokens of one shard, in one loop. A token's ref is `firstRef` and twice its
   * slot.
   */
  insertAll(number: number, hashes: Uint32Array, slots: Uint32Array, firstRef: number): void {
    const shard = this.#withRoom(number, hashes.length);
    for (let i = 0; i < hashes.length; i++) place(shard, hashes[i]!, firstRef + 2 * slots[i]!);
    this.#counts[number] = this.#counts[number]! + hashes.length;
  }

  /** The shard, grown if `more` tokens would overfill it. */
  #withRoom(number: number, more = 1): Uint32Array {
    let shard = this.#shards[number] as Uint32Array;
    while (this.#counts[number]! + more > (shard.length >>> 1) * MAX_LOAD) shard = grown(shard);
    this.#shards[number] = shard;
    return shard;
  }

  move(hash: number, from: number, to: number): void {
    const shard = this.#shards[hash & (SHARDS - 1)] as Uint32Array;
    shard[find(shard, hash, from) + 1] = to;
  }

  remove(hash: number, ref: number): void {
    const number = hash & (SHARDS - 1);
    const shard = this.#shards[number] as Uint32Array;
    let free = find(shard, hash, ref);
    this.#counts[number] = this.#counts[number]! - 1;
    // Later tokens move up, unless that would put them before their own place.
    for (let at = next(free, shard); shard[at + 1] !== 0; at = next(at, shard)) {
      const own = home(shard[at]!, shard);
      const between = free < at ? own > free && own <= at : own > free || own <= at;
      if (between) continue;
      shard[free] = shard[at]!;
      shard[free + 1] = shard[at + 1]!;
      free = at;
    }
    shard[free] = 0;
    shard[free + 1] = 0;
  }
}

const MIN_CAPACITY = 4;
const MAX_LOAD = 0.75;
const START_LOAD = 0.7; // The load of a table at its expected size: more would slow the look-ups
const GROWTH = 1.5;

function home(hash: number, shard: Uint32Array): number {
  return 2 * Math.floor(((hash >>> 8) * (shard.length >>> 1)) / 2 ** 24);
}

function next(at: number, shard: Uint32Array): number {
  return at + 2 === shard.length ? 0 : at + 2;
}

function place(shard: Uint32Array, hash: number, ref: number): void {
  let at = home(hash, shard);
  while (shard[at + 1] !== 0) at = next(at, shard);
  shard[at] = hash;
  shard[at + 1] = ref;
}

function find(shard: Uint32Array, hash: number, ref: number): number {
  let at = home(hash, shard);
  while (shard[at] !== hash || shard[at + 1] !== ref) {
    if (shard[at + 1] === 0) throw new Error("a token is not where the index put it");
    at = next(at, shard);
  }
  return at;
}

function grown(shard: Uint32Array): Uint32Array {
  const larger = new Uint32Array(2 * Math.ceil((shard.length >>> 1) * GROWTH));
  for (let at = 0; at < shard.length; at += 2) {
    if (shard[at + 1] !== 0) place(larger, shard[at]!, shard[at + 1]!);
  }
  return larger;
}

export interface BatchTokens {
  readonly hashes: Uint32Array;
  readonly slots: Uint32Array;
}

/**
 * The record of a sealed batch that restores the index of tokens when the engine opens. Sorted by
 * shard of the index, then by slot. So all batches together fill one shard after another, each
 * while it is in the processor's cache:
 *
 * ```
 * record = version:1 = 0x01 count*( hash:4 ) count*( slot:4 ) crc32:4
 * ```
 */
export function encodeBatchTokens({ hashes, slots }: BatchTokens): Buffer {
  const count = hashes.length;
  const record = Buffer.allocUnsafe(1 + 8 * count + 4);
  record[0] = RECORD_VERSION;
  const starts = new Uint32Array(SHARDS + 1);
  for (let i = 0; i < count; i++) {
    const shard = (hashes[i]! & (SHARDS - 1)) + 1;
    starts[shard] = starts[shard]! + 1;
  }
  for (let shard = 1; shard <= SHARDS; shard++) starts[shard] = starts[shard]! + starts[shard - 1]!;
  for (let i = 0; i < count; i++) {
    const hash = hashes[i]!;
    const shard = hash & (SHARDS - 1);
    const at = starts[shard]!;
    starts[shard] = at + 1;
    record.writeUInt32BE(hash, 1 + 4 * at);
    record.writeUInt32BE(slots[i]!, 1 + 4 * (count + at));
  }
  record.writeUInt32BE(crc32(record.subarray(0, record.length - 4)), record.length - 4);
  return record;
}

/**
 * The inverse, in the order of the record. Throws `store_corrupt`.
 *
 * @param words - takes the values, two words a token, if the caller has room for them
 */
export function decodeBatchTokens(record: Buffer, name: string, words?: Uint32Array): BatchTokens {
  const count = (record.length - 5) / 8;
  const end = record.length - 4;
  const whole = Number.isInteger(count) && count >= 0 && record[0] === RECORD_VERSION;
  const fits = words === undefined || 2 * count <= words.length;
  if (!whole || !fits || record.readUInt32BE(end) !== crc32(record.subarray(0, end)))
    throw new MintmarkError(
      "store_corrupt",
      `The tokens of ${name} are not what the engine wrote.`,
    );
  // Converts all to this machine's byte order at once. Single reads would take longer than the rest
  // of opening.
  const values = words ?? new Uint32Array(2 * count);
  const bytes = Buffer.from(values.buffer, values.byteOffset, 8 * count);
  record.copy(bytes, 0, 1, end);
  bytes.swap32();
  return { hashes: values.subarray(0, count), slots: values.subarray(count, 2 * count) };
}
