import { SHARDS } from "../store/batch-tokens.ts";

/**
 * Where every ERC-721 token is, in memory: a table from a token's 32-bit hash to its vault, 8 bytes a place, 10.7 to 16 bytes a token.
 * Two tokens can share a hash, so what is found is a candidate: whoever asks reads the vault to be sure. What is not found does not
 * exist, and that is the usual answer to a mint, for which nothing is read.
 *
 * 256 shards, told apart by the low byte of the hash, grow one by one, so that no growth takes long. In a shard a token's place is
 * proportional to the rest of its hash, then the next free one behind it; so growing walks through memory in order.
 *
 * ```
 *   shard  [ hash ref | 0 0 | hash ref | hash ref | 0 0 | … ]      ref 0: free
 * ```
 */
export class TokenIndex {
  readonly #shards: Uint32Array[] = [];
  readonly #counts = new Uint32Array(SHARDS);
  #size = 0;
  /** Of no use, but for it the compiler might leave out the reads. */
  readonly #prefetched = new Uint32Array(1);

  /** @param expected - tokens to make room for at once */
  constructor(expected = 0) {
    const capacity = Math.max(MIN_CAPACITY, Math.ceil((expected / SHARDS) * (1 / START_LOAD)));
    for (let i = 0; i < SHARDS; i++) this.#shards.push(new Uint32Array(2 * capacity));
  }

  /** The number of tokens. */
  get size(): number {
    return this.#size;
  }

  /** Bytes that the table takes. */
  get bytes(): number {
    return this.#shards.reduce((sum, shard) => sum + shard.byteLength, 0);
  }

  /** The refs of all tokens that have this hash; null when there is none. */
  candidates(hash: number): number[] | null {
    const shard = this.#shards[hash & (SHARDS - 1)] as Uint32Array;
    let found: number[] | null = null;
    for (let at = home(hash, shard); shard[at + 1] !== 0; at = next(at, shard)) {
      if (shard[at] !== hash) continue;
      found ??= [];
      found.push(shard[at + 1] as number);
    }
    return found;
  }

  /**
   * Of each hash the ref that stands in its own place, 0 when that is free: then no token has the hash. The table is far larger than the
   * processor's caches, and in this loop no look-up waits for the memory of the one before.
   */
  refsAtHome(hashes: Uint32Array): Uint32Array {
    const refs = new Uint32Array(hashes.length);
    for (let i = 0; i < hashes.length; i++) {
      const hash = hashes[i] as number;
      const shard = this.#shards[hash & (SHARDS - 1)] as Uint32Array;
      refs[i] = shard[home(hash, shard) + 1] as number;
    }
    return refs;
  }

  /** Reads the hashes' own places for the same reason, so that what asks for them next finds them in the caches. */
  prefetch(hashes: Uint32Array): void {
    let read = 0;
    for (let i = 0; i < hashes.length; i++) {
      const hash = hashes[i] as number;
      const shard = this.#shards[hash & (SHARDS - 1)] as Uint32Array;
      read ^= shard[home(hash, shard) + 1] as number;
    }
    this.#prefetched[0] = read;
  }

  /** @param ref - 1 to 2^32 - 1 */
  insert(hash: number, ref: number): void {
    const shard = this.#withRoom(hash & (SHARDS - 1));
    let at = home(hash, shard);
    while (shard[at + 1] !== 0) at = next(at, shard);
    this.#put(shard, at, hash, ref);
  }

  /** {@link insert} unless there is a token of this hash; whether it was put in. One walk, where asking first would take two. */
  insertNew(hash: number, ref: number): boolean {
    const shard = this.#withRoom(hash & (SHARDS - 1));
    let at = home(hash, shard);
    for (; shard[at + 1] !== 0; at = next(at, shard)) if (shard[at] === hash) return false;
    this.#put(shard, at, hash, ref);
    return true;
  }

  /**
   * {@link insert} of tokens that are all of one shard, in one loop.
   *
   * @param refs - `firstRef` and twice the slot is a token's ref
   */
  insertAll(number: number, hashes: Uint32Array, slots: Uint32Array, firstRef: number): void {
    const shard = this.#withRoom(number, hashes.length);
    for (let i = 0; i < hashes.length; i++) place(shard, hashes[i] as number, firstRef + 2 * (slots[i] as number));
    this.#counts[number] = (this.#counts[number] as number) + hashes.length;
    this.#size += hashes.length;
  }

  /** The shard, grown when so many more tokens would overfill it. */
  #withRoom(number: number, more = 1): Uint32Array {
    let shard = this.#shards[number] as Uint32Array;
    while ((this.#counts[number] as number) + more > (shard.length >>> 1) * MAX_LOAD) shard = grown(shard);
    this.#shards[number] = shard;
    return shard;
  }

  #put(shard: Uint32Array, at: number, hash: number, ref: number): void {
    shard[at] = hash;
    shard[at + 1] = ref;
    const number = hash & (SHARDS - 1);
    this.#counts[number] = (this.#counts[number] as number) + 1;
    this.#size++;
  }

  /** Gives a token that is there another ref. */
  move(hash: number, from: number, to: number): void {
    const shard = this.#shards[hash & (SHARDS - 1)] as Uint32Array;
    shard[find(shard, hash, from) + 1] = to;
  }

  /** Takes out a token that is there. */
  remove(hash: number, ref: number): void {
    const number = hash & (SHARDS - 1);
    const shard = this.#shards[number] as Uint32Array;
    let free = find(shard, hash, ref);
    this.#counts[number] = (this.#counts[number] as number) - 1;
    this.#size--;
    // Those behind move up, unless that would put them before their own place.
    for (let at = next(free, shard); shard[at + 1] !== 0; at = next(at, shard)) {
      const own = home(shard[at] as number, shard);
      const between = free < at ? own > free && own <= at : own > free || own <= at;
      if (between) continue;
      shard[free] = shard[at] as number;
      shard[free + 1] = shard[at + 1] as number;
      free = at;
    }
    shard[free] = 0;
    shard[free + 1] = 0;
  }
}

const MIN_CAPACITY = 4;
const MAX_LOAD = 0.75;
/** Of a table that is made for an expected number: room to grow by a quarter. */
const START_LOAD = 0.6;
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
    if (shard[at + 1] !== 0) place(larger, shard[at] as number, shard[at + 1] as number);
  }
  return larger;
}
