import type { L1Event, L1Reader } from "../ports.ts";

/**
 * What was read of blocks that are not final yet, to be compared with what they say once they are. Behind one RPC address there are often
 * several nodes, and one that lags answers a question for logs of blocks that it does not have with fewer, or none, and without an error.
 * In memory: what an earlier process has read is not looked at again.
 */
export class SecondLook {
  /** The first block that was read and not looked at again; null before the first. */
  #from: bigint | null = null;
  #seen: L1Event[] = [];

  /** Blocks from this one on were read, and these are their events. What was read of them before counts no more. */
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

  /** Reads the blocks up to this one again. The first whose events are others than the first time; null when none is. */
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
