import type { Mode } from "../model.ts";
import type { VaultPlace } from "../protocol/vault.ts";
import type { OpenBatch } from "./open-batch.ts";

/** The batches whose vaults are in memory: of each mode the open one, and those that are closed but perhaps not on disk yet. */
export class UnsealedBatches {
  readonly #open = new Map<Mode, OpenBatch>();
  /** By number. */
  readonly #closed: Readonly<Record<Mode, Map<number, OpenBatch>>> = { validium: new Map(), "zk-rollup": new Map() };

  open(mode: Mode): OpenBatch {
    const open = this.#open.get(mode);
    if (open === undefined) throw new Error(`the open batch of ${mode} is not loaded`);
    return open;
  }

  /** Puts a batch in the place of its mode's open one, which is closed then. */
  setOpen(batch: OpenBatch): void {
    const before = this.#open.get(batch.mode);
    if (before !== undefined) this.#closed[batch.mode].set(before.batchNumber, before);
    this.#open.set(batch.mode, batch);
  }

  /** Puts a batch in the place of its mode's open one and of all that are closed: L1's history has none of them. */
  replace(batch: OpenBatch): void {
    this.#closed[batch.mode].clear();
    this.#open.set(batch.mode, batch);
  }

  /** A closed batch is on disk: its vaults are read from there. */
  release({ mode, batchNumber }: OpenBatch): void {
    this.#closed[mode].delete(batchNumber);
  }

  /** The batch of a place when its vaults are in memory. */
  at({ mode, batchNumber }: VaultPlace): OpenBatch | undefined {
    const open = this.open(mode);
    return open.batchNumber === batchNumber ? open : this.#closed[mode].get(batchNumber);
  }
}
