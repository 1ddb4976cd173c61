import type { KitChain } from "../../core/exit/index.ts";
import type { Hash, L1Reader, PortalIdentity } from "../../core/index.ts";
import type { Finality } from "../../core/l1/index.ts";
import { within } from "./readiness.ts";

/** The parts of a chain that the server uses. */
export type ReachedChain = KitChain &
  Pick<L1Reader, "verifySignature" | "blockNumber"> & {
    gasUsed(txHash: Hash): Promise<bigint>;
    /** Absent without an account there. */
    operatorBalance?(): Promise<bigint>;
  };

export type Chain<T extends ReachedChain = ReachedChain> = ReturnType<typeof chainOf<T>>;

/**
 * A chain that is connected and verified at first use, because its node may be down when the server
 * starts.
 */
export function chainOf<T extends ReachedChain>(
  settlement: PortalIdentity,
  reach: () => Promise<T>,
) {
  let connected: Promise<T> | null = null;
  /** Rejects with `l1_failed`; the next call tries again. */
  const connect = (): Promise<T> => {
    connected ??= reach().catch((error) => {
      connected = null;
      throw error;
    });
    return connected;
  };
  const verifySignature: L1Reader["verifySignature"] = async (...signed) =>
    (await connect()).verifySignature(...signed);
  return { settlement, connect, verifySignature };
}

/** A block is final with so many above it; without a number, when the chain says so. */
export function finalityOf(confirmations: bigint | number | undefined): Finality {
  return confirmations === undefined ? "finalized" : { confirmations: BigInt(confirmations) };
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
      const asked = async () => (await chains.get(chainId)?.())?.gasUsed?.(txHash);
      const gas = await within(GAS_MS, asked(), () => new Error("no answer"));
      if (gas === undefined) return null;
      if (kept.size >= MOST_KEPT) kept.clear();
      kept.set(txHash, gas);
      return gas;
    } catch {
      return null;
    }
  };
}
