import type { Batch, Hash } from "../../../core/index.ts";
import { within } from "./deadline.ts";

/** What it needs of a chain. */
export interface GasChain {
  /** Rejects when L1 has not mined the transaction. */
  gasUsed?(txHash: Hash): Promise<bigint>;
}

/** Most transactions whose gas is kept. */
const MOST_KEPT = 1_000;
/** Time for L1's node to answer. */
const GAS_MS = 3_000;

/** The gas of commits. L1's node is asked once for each transaction, because its gas never changes. */
export class CommitGas {
  readonly #chain: (() => Promise<GasChain>) | undefined;
  readonly #kept = new Map<Hash, bigint>();

  constructor(chain: (() => Promise<GasChain>) | undefined) {
    this.#chain = chain;
  }

  /** The gas of a batch's commit; null for one that is not committed, or while L1 does not answer. */
  async of({ l1TxHash }: Pick<Batch, "l1TxHash">): Promise<bigint | null> {
    if (l1TxHash === null) return null;
    const kept = this.#kept.get(l1TxHash);
    if (kept !== undefined) return kept;
    try {
      const chain = await this.#chain?.();
      if (chain?.gasUsed === undefined) return null;
      const gas = await within(GAS_MS, chain.gasUsed(l1TxHash), () => new Error("no answer"));
      if (this.#kept.size >= MOST_KEPT) this.#kept.clear();
      this.#kept.set(l1TxHash, gas);
      return gas;
    } catch {
      return null;
    }
  }
}
