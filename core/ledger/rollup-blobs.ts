import type { MintmarkError } from "../errors.ts";
import { type Kzg, KzgThread } from "../protocol/kzg/kzg-thread.ts";
import type { NewVault } from "../store/vault-columns.ts";
import { elementsOf } from "./open-batch.ts";
import { Openings } from "./openings.ts";
import type { EngineOptions } from "./options.ts";

/** Which rollup vaults go into blobs, and what commits to the blobs. */
export class RollupBlobs {
  readonly kzg: Kzg;
  readonly openings: Openings;
  readonly #own: KzgThread | null;
  readonly #home: bigint;
  readonly #chainOf: (assetIndex: number) => bigint;
  readonly #chains = new Set<bigint>();
  #fault: MintmarkError | null = null;
  readonly #sealing = new Set<(fault: MintmarkError) => void>();

  constructor(
    { kzg, settlement }: Pick<EngineOptions, "kzg" | "settlement">,
    chainOf: (assetIndex: number) => bigint,
  ) {
    this.#own = kzg === undefined ? new KzgThread() : null;
    this.kzg = kzg ?? (this.#own as KzgThread);
    this.openings = new Openings(this.kzg);
    this.#home = settlement.chainId;
    this.#chainOf = chainOf;
  }

  /** From the next mint on, vaults of a chain's tokens go into blobs, or no longer. */
  place(chainId: bigint, takesBlobs: boolean): void {
    if (takesBlobs) this.#chains.add(chainId);
    else this.#chains.delete(chainId);
  }

  /** The kind of rollup batch that the usual vaults of the settlement chain's tokens go into. */
  get usual(): "calldata" | "blobs" {
    return this.#chains.has(this.#home) ? "blobs" : "calldata";
  }

  /**
   * Whether a new vault goes into blobs: settlement contract and token are on chains that take
   * them, and it fits.
   */
  takes(vault: NewVault): boolean {
    if (!this.#chains.has(this.#home)) return false;
    return this.#chains.has(this.#chainOf(vault.assetIndex)) && elementsOf(vault) > 0;
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
