import type { Hash } from "../model.ts";
import type { Database } from "../store/ports.ts";

/** A block whose events were applied, by the hash it had then. */
export interface Checkpoint {
  readonly number: bigint;
  readonly hash: Hash;
}

/**
 * The blocks up to which a watcher has read, with their hashes: how it notices that the chain it read is not the chain there is. Kept in
 * memory, and in a store when there is one, so that a restart notices it too. Store: chain id and block number, 16 hex digits each → block
 * hash; one store holds those of many chains.
 */
export class Checkpoints {
  /** By number, ascending. */
  #blocks: Checkpoint[] = [];
  #stored: { readonly store: Database; readonly chainId: bigint } | null = null;

  /** A chain's checkpoints, which outlive the process. The store is the caller's to close. */
  static async open(store: Database, chainId: bigint): Promise<Checkpoints> {
    const checkpoints = new Checkpoints();
    const range = { ...TEXT, gte: keyOf(chainId, 0n), lt: keyOf(chainId + 1n, 0n) };
    for await (const [key, hash] of store.iterator<string, string>(range)) {
      checkpoints.#blocks.push({ number: BigInt(`0x${key.slice(DIGITS)}`), hash: hash as Hash });
    }
    checkpoints.#stored = { store, chainId };
    return checkpoints;
  }

  /** Those at or below a block, newest first. */
  downFrom(number: bigint): readonly Checkpoint[] {
    return this.#blocks.filter((block) => block.number <= number).toReversed();
  }

  /** Adds the newest block; on disk when it resolves. */
  async put(block: Checkpoint): Promise<void> {
    // Higher ones are left from a write that the engine did not follow.
    await this.dropFrom(block.number);
    if (this.#stored !== null) {
      const { store, chainId } = this.#stored;
      // classic-level understands `sync`; other stores ignore it.
      await store.put<string, string>(keyOf(chainId, block.number), block.hash, { ...TEXT, sync: true } as object);
    }
    this.#blocks.push(block);
  }

  /** Forgets this block and those above it. */
  async dropFrom(number: bigint): Promise<void> {
    await this.#clear((chainId) => ({ gte: keyOf(chainId, number), lt: keyOf(chainId + 1n, 0n) }));
    this.#blocks = this.#blocks.filter((block) => block.number < number);
  }

  /** Forgets all final checkpoints but the newest ones, which tell where a chain parts that replaces final blocks. */
  async prune(finalized: bigint): Promise<void> {
    const oldest = this.downFrom(finalized)[FINAL_KEPT - 1];
    if (oldest === undefined) return;
    await this.#clear((chainId) => ({ gte: keyOf(chainId, 0n), lt: keyOf(chainId, oldest.number) }));
    this.#blocks = this.#blocks.filter((block) => block.number >= oldest.number);
  }

  async #clear(range: (chainId: bigint) => { readonly gte: string; readonly lt: string }): Promise<void> {
    if (this.#stored === null) return;
    await this.#stored.store.clear<string>({ keyEncoding: "utf8", ...range(this.#stored.chainId) });
  }
}

const TEXT = { keyEncoding: "utf8", valueEncoding: "utf8" } as const;

/** Final checkpoints that are kept. */
const FINAL_KEPT = 64;

/** Of a chain id, and of a block number. */
const DIGITS = 16;

function keyOf(chainId: bigint, number: bigint): string {
  return [chainId, number].map((part) => part.toString(16).padStart(DIGITS, "0")).join("");
}
