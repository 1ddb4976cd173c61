import type { MintmarkError } from "../errors.ts";
import { type Kzg, KzgThread } from "../protocol/kzg/kzg-thread.ts";
import { Openings } from "./openings.ts";
import type { EngineOptions } from "./options.ts";

/**
 * Whether rollup batches go into blobs, whose tokens they can pay, and what commits to the blobs.
 */
export class RollupBlobs {
  readonly kzg: Kzg;
  readonly openings: Openings;
  readonly #own: KzgThread | null;
  readonly #home: bigint;
  /** Whether a chain takes blobs or, for a mirror's chain, can open them. */
  readonly #chains = new Map<bigint, boolean>();
  #fault: MintmarkError | null = null;
  readonly #sealing = new Set<(fault: MintmarkError) => void>();

  constructor({ kzg, settlement }: Pick<EngineOptions, "kzg" | "settlement">) {
    this.#own = kzg === undefined ? new KzgThread() : null;
    this.kzg = kzg ?? (this.#own as KzgThread);
    this.openings = new Openings(this.kzg);
    this.#home = settlement.chainId;
  }

  /**
   * Sets whether rollup batches go into blobs (settlement chain), or whether a chain's tokens can
   * be minted in them.
   */
  place(chainId: bigint, takesBlobs: boolean): void {
    this.#chains.set(chainId, takesBlobs);
  }

  /** The kind of rollup batch that a seal makes now. */
  get kind(): "calldata" | "blobs" {
    return this.#chains.get(this.#home) === true ? "blobs" : "calldata";
  }

  /**
   * Why rollup batches cannot pay a chain's tokens; null when they can. A mirror opens a vault in
   * blobs with a precompile that some chains lack. That also holds while batches go into calldata,
   * because the seal chooses.
   */
  unpaid(chainId: bigint): string | null {
    const opensBlobs = chainId === this.#home || this.#chains.get(chainId);
    if (opensBlobs === true) return null;
    return opensBlobs === false
      ? `chain ${chainId} lacks the precompile 0x0a, which pays vaults of rollup batches; mint as validium`
      : `the engine has not learnt yet whether chain ${chainId} can pay vaults of rollup batches; repeat later, or mint as validium`;
  }

  /** Why a closed batch waits for its commitments; null while none does. */
  get fault(): MintmarkError | null {
    return this.#fault;
  }

  set fault(fault: MintmarkError | null) {
    this.#fault = fault;
    if (fault === null) return;
    for (const reject of this.#sealing) reject(fault);
    this.#sealing.clear();
  }

  /**
   * Like `sealed`, but rejects with the fault as soon as there is one, because the seal then waits
   * for its end.
   */
  unlessFaulty<T>(sealed: Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      sealed.then(resolve, reject).finally(() => this.#sealing.delete(reject));
      if (this.#fault === null) this.#sealing.add(reject);
      else reject(this.#fault);
    });
  }

  async close(): Promise<void> {
    await this.#own?.close();
  }
}
