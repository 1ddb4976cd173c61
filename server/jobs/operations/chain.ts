import type { KitChain } from "../../../core/guards/exit/index.ts";
import type { Hash, L1Reader, PortalIdentity } from "../../../core/index.ts";

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
