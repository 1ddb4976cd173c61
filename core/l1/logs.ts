import { BaseError, HttpRequestError, type Log, type PublicClient } from "viem";
import { least, MOST_BLOCKS } from "../blocks.ts";
import type { Address } from "../model.ts";

/**
 * Reads a contract's logs in ranges that the node takes. Nodes bound a question's blocks, or its answer's logs, each in its own way and
 * words; so a range that one refuses is halved, down to a single block, and grows again with each that it takes.
 */
export class LogReader {
  readonly #client: PublicClient;
  readonly #address: Address;
  #blocks = MOST_BLOCKS;

  constructor(client: PublicClient, address: Address) {
    this.#client = client;
    this.#address = address;
  }

  /** In chain order. Rejects with what the node says of a single block. */
  async read(fromBlock: bigint, toBlock: bigint): Promise<Log[]> {
    const logs: Log[] = [];
    for (let from = fromBlock; from <= toBlock; ) {
      const blocks = this.#blocks;
      const to = least(from + blocks - 1n, toBlock);
      try {
        logs.push(...(await this.#client.getLogs({ address: this.#address, fromBlock: from, toBlock: to })));
      } catch (error) {
        if (from === to || !isRefusal(error)) throw error;
        this.#blocks = (to - from + 1n) / 2n;
        continue;
      }
      from = to + 1n;
      this.#blocks = least(blocks * 2n, MOST_BLOCKS);
    }
    return logs;
  }
}

/** The node was reached, and said no. */
function isRefusal(error: unknown): boolean {
  if (!(error instanceof BaseError)) return false;
  const answer = error.walk((inner) => inner instanceof HttpRequestError);
  if (answer instanceof HttpRequestError) return answer.status === 400 || answer.status === 413;
  return error.walk((inner) => typeof (inner as { code?: unknown }).code === "number") !== null;
}
