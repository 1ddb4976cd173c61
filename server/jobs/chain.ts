import type { KitChain } from "../../core/guards/exit/index.ts";
import type { Hash, L1Reader, PortalIdentity } from "../../core/index.ts";
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

  async operatorBalance(): Promise<bigint | undefined> {
    return (await this.connect()).operatorBalance?.();
  }
}

export interface GasChain {
  /** Rejects when L1 has not mined the transaction. */
  gasUsed?(txHash: Hash): Promise<bigint>;
}

/** The gas of a chain's mined transaction; null while its node does not answer, and without one. */
export type GasOf = (chainId: bigint, txHash: Hash) => Promise<bigint | null>;

const MOST_KEPT = 1_000;
const GAS_MS = 5_000;

/** Asks these chains for the gas of transactions, for each once, because it never changes. */
export function gasOf(chains: ReadonlyMap<bigint, () => Promise<GasChain>>): GasOf {
  const kept = new Map<Hash, bigint>();
  return async (chainId, txHash) => {
    const known = kept.get(txHash);
    if (known !== undefined) return known;
    try {
      const chain = await chains.get(chainId)?.();
      if (chain?.gasUsed === undefined) return null;
      const gas = await within(GAS_MS, chain.gasUsed(txHash), () => new Error("no answer"));
      if (kept.size >= MOST_KEPT) kept.clear();
      kept.set(txHash, gas);
      return gas;
    } catch {
      return null;
    }
  };
}
