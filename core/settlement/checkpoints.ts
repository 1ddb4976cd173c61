import type { Database } from "../engine-types.ts";
import type { Hash } from "../model.ts";

/** A block whose events were applied, by the hash it had then. */
export interface Checkpoint {
  readonly number: bigint;
  readonly hash: Hash;
}

/**
 * The blocks up to which a watcher has read, with their hashes: how it notices that the chain it read is not the chain there is. Kept in
 * memory, and in a store when there is one, so that a restart notices it too. Store: block number as 16 hex digits → block hash.
 */
export class Checkpoints {
  /** By number, ascending. */
  #blocks: Checkpoint[] = [];
  #store: Database | null = null;

  /** Checkpoints that outlive the process. The store is the caller's to close. */
  static async open(store: Database): Promise<Checkpoints> {
    const checkpoints = new Checkpoints();
    for await (const [key, hash] of store.iterator<string, string>(TEXT)) {
      checkpoints.#blocks.push({ number: BigInt(`0x${key}`), hash: hash as Hash });
    }
    checkpoints.#store = store;
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
    // classic-level understands `sync`; other stores ignore it.
    await this.#store?.put<string, string>(keyOf(block.number), block.hash, { ...TEXT, sync: true } as object);
    this.#blocks.push(block);
  }

  /** Forgets this block and those above it. */
  async dropFrom(number: bigint): Promise<void> {
    await this.#store?.clear<string>({ keyEncoding: "utf8", gte: keyOf(number) });
    this.#blocks = this.#blocks.filter((block) => block.number < number);
  }

  /** Forgets what lies below the newest final checkpoint: nothing will be compared with it any more. */
  async prune(finalized: bigint): Promise<void> {
    const [newestFinal] = this.downFrom(finalized);
    if (newestFinal === undefined) return;
    await this.#store?.clear<string>({ keyEncoding: "utf8", lt: keyOf(newestFinal.number) });
    this.#blocks = this.#blocks.filter((block) => block.number >= newestFinal.number);
  }
}

const TEXT = { keyEncoding: "utf8", valueEncoding: "utf8" } as const;

function keyOf(number: bigint): string {
  return number.toString(16).padStart(16, "0");
}
