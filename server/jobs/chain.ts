import type { KitChain } from "../../core/guards/exit/index.ts";
import type { Batch, Hash, L1Reader, PortalIdentity } from "../../core/index.ts";
import { within } from "./readiness.ts";

/** The parts of a chain that the server uses. */
type ReachedChain = KitChain &
  Pick<L1Reader, "verifySignature" | "blockNumber"> & {
    gasUsed(txHash: Hash): Promise<bigint>;
    /** Absent without an account there. */
    operatorBalance?(): Promise<bigint>;
  };

/** A chain that is connected and verified at first use, because its node may be down when the server starts. */
export class Chain<T extends ReachedChain = ReachedChain> {
  readonly settlement: PortalIdentity;
  readonly #connect: () => Promise<T>;
  #connected: Promise<T> | null = null;

  constructor(settlement: PortalIdentity, connect: () => Promise<T>) {
    this.settlement = settlement;
    this.#connect = connect;
  }

  /** Rejects with `l1_failed`; the next call tries again. */
  connect = (): Promise<T> => {
    this.#connected ??= this.#connect().catch((error) => {
      this.#connected = null;
      throw error;
    });
    return this.#connected;
  };

  verifySignature: L1Reader["verifySignature"] = async (...signed) => (await this.connect()).verifySignature(...signed);

  async blockNumber(): Promise<bigint> {
    return (await this.connect()).blockNumber();
  }

  async gasUsed(txHash: Hash): Promise<bigint> {
    return (await this.connect()).gasUsed(txHash);
  }

  async operatorBalance(): Promise<bigint | undefined> {
    return (await this.connect()).operatorBalance?.();
  }
}

export interface GasChain {
  /** Rejects when L1 has not mined the transaction. */
  gasUsed?(txHash: Hash): Promise<bigint>;
}

const MOST_KEPT = 1_000;
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
