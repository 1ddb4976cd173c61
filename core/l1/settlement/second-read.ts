import type { L1Event, L1Reader } from "../../ports.ts";

/**
 * Reads of blocks that were not final, to be compared with a second read once they are. One RPC address often stands
 * for several nodes. A node that lags answers a question for unknown blocks with fewer logs, or none, and without an
 * error. In memory: reads of an earlier process are not repeated.
 */
export class SecondRead {
  /** The first block without a second read; null before the first read. */
  #from: bigint | null = null;
  #seen: L1Event[] = [];

  /** Records the events of the blocks from this one on. Replaces earlier reads of them. */
  saw(fromBlock: bigint, events: readonly L1Event[]): void {
    this.forget(fromBlock);
    this.#from ??= fromBlock;
    this.#seen.push(...events);
  }

  /** These blocks will be read again. */
  forget(fromBlock: bigint): void {
    this.#seen = this.#seen.filter(({ blockNumber }) => blockNumber < fromBlock);
    if (this.#from !== null && this.#from > fromBlock) this.#from = fromBlock;
  }

  /** Reads the blocks up to this one again. Returns the first one whose events differ; null when none does. */
  async upTo(block: bigint, l1: Pick<L1Reader, "events">): Promise<bigint | null> {
    if (this.#from === null || this.#from > block) return null;
    const again = (await l1.events(this.#from, block)).map(nameOf);
    const before = this.#seen.filter(({ blockNumber }) => blockNumber <= block).map(nameOf);
    const differs = [...difference(again, before), ...difference(before, again)].map(blockOf);
    if (differs.length > 0) return differs.reduce((a, b) => (a < b ? a : b));
    this.#seen = this.#seen.filter(({ blockNumber }) => blockNumber > block);
    this.#from = block + 1n;
    return null;
  }
}

function nameOf({ blockNumber, logIndex, txHash, type }: L1Event): string {
  return `${blockNumber} ${logIndex} ${txHash} ${type}`;
}

function difference(names: readonly string[], others: readonly string[]): string[] {
  const known = new Set(others);
  return names.filter((name) => !known.has(name));
}

function blockOf(name: string): bigint {
  return BigInt(name.slice(0, name.indexOf(" ")));
}
