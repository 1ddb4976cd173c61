import { endianness } from "node:os";
import type { BatchPlace, BatchVaultPlace } from "../protocol/vault.ts";
import { type BatchTokens, SHARDS } from "../store/token-index.ts";

/** Hashes compared at once, in 32 MB: the memory is the same for any number of tokens. */
const AT_ONCE = 1 << 22;
/** The words of a 64-bit number in memory. */
const [LOW, HIGH] = endianness() === "LE" ? [0, 1] : [1, 0];

/** A batch, and how its tokens are read. */
export interface TokenBatch extends BatchPlace {
  readonly vaultCount: number;
  tokens(): Promise<BatchTokens>;
}

/**
 * The vaults whose tokens have equal hashes, group by group. A hash of `alone` makes a group even
 * of one vault.
 *
 * Reads all batches once for each {@link AT_ONCE} tokens, and takes other shards of the hashes each
 * time: memory stays the same, and the time of a read is small beside the derivation's.
 *
 * @param size - number of all tokens
 */
export async function* equalHashes(
  batches: readonly TokenBatch[],
  size: number,
  alone: ReadonlySet<number>,
  atOnce = AT_ONCE,
): AsyncGenerator<{ readonly hash: number; readonly places: readonly BatchVaultPlace[] }> {
  const shards = Math.max(1, Math.floor((SHARDS * atOnce) / Math.max(size, 1)));
  const firsts: number[] = [];
  let vaults = 0;
  for (const { vaultCount } of batches) {
    firsts.push(vaults);
    vaults += vaultCount;
  }
  for (let shard = 0; shard < SHARDS; shard += shards) {
    const found = new HashedVaults(Math.ceil((size / SHARDS) * shards * 1.02) + 1_024);
    for (const [i, batch] of batches.entries()) {
      const { hashes, slots } = await batch.tokens();
      const end = startOf(hashes, shard + shards);
      for (let at = startOf(hashes, shard); at < end; at++)
        found.add(hashes[at]!, firsts[i]! + slots[at]!);
    }
    for (const { hash, ordinals } of found.groups(alone))
      yield { hash, places: ordinals.map((ordinal) => placeOf(batches, firsts, ordinal)) };
  }
}

/** Where a shard begins among hashes that are sorted by shard. */
function startOf(hashes: Uint32Array, shard: number): number {
  let [from, to] = [0, hashes.length];
  while (from < to) {
    const middle = (from + to) >>> 1;
    if ((hashes[middle]! & (SHARDS - 1)) < shard) from = middle + 1;
    else to = middle;
  }
  return from;
}

function placeOf(
  batches: readonly TokenBatch[],
  firsts: readonly number[],
  ordinal: number,
): BatchVaultPlace {
  let [from, to] = [0, firsts.length];
  while (to - from > 1) {
    const middle = (from + to) >>> 1;
    if (firsts[middle]! <= ordinal) from = middle;
    else to = middle;
  }
  const { mode, batchNumber } = batches[from]!;
  return { mode, batchNumber, slot: ordinal - firsts[from]! };
}

/** Vaults by number with the hashes of their tokens, 8 bytes each. */
class HashedVaults {
  #pairs: BigUint64Array<ArrayBuffer>;
  #words: Uint32Array;
  #count = 0;

  constructor(capacity: number) {
    this.#pairs = new BigUint64Array(capacity);
    this.#words = new Uint32Array(this.#pairs.buffer);
  }

  /** @param ordinal - the vault's number, below 2^32: a mode has at most 2^31 places */
  add(hash: number, ordinal: number): void {
    if (this.#count === this.#pairs.length) this.#grow();
    this.#words[2 * this.#count + LOW] = ordinal;
    this.#words[2 * this.#count + HIGH] = hash;
    this.#count++;
  }

  /** Vaults of one hash, if there are several, or the hash is among `alone`. */
  *groups(alone: ReadonlySet<number>) {
    this.#pairs.subarray(0, this.#count).sort();
    const words = this.#words;
    for (let start = 0, end = 0; start < this.#count; start = end) {
      const hash = words[2 * start + HIGH]!;
      while (end < this.#count && words[2 * end + HIGH] === hash) end++;
      if (end - start === 1 && !alone.has(hash)) continue;
      const ordinals = Array.from({ length: end - start }, (_, i) => words[2 * (start + i) + LOW]!);
      yield { hash, ordinals };
    }
  }

  #grow(): void {
    const larger = new BigUint64Array(2 * this.#pairs.length);
    larger.set(this.#pairs);
    this.#pairs = larger;
    this.#words = new Uint32Array(larger.buffer);
  }
}
