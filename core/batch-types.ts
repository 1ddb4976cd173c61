import type { BatchFilter, List } from "./list-types.ts";
import type { Batch, Hash, Mode, VaultId } from "./model.ts";
import type { SealedBatch, VaultContent } from "./ports.ts";
import type { EngineState } from "./proof-types.ts";
import type { WaitOptions } from "./wait-types.ts";

/** Consecutive slots of a batch, and why L1 refuses them. */
export interface VoidSlots {
  readonly firstSlot: number;
  readonly count: number;
  /** 1 to 2000 characters; the application reads it. */
  readonly failure: string;
}

/** Batches and the state over them: public, without tenants. */
export interface Batches {
  /** Closes the mode's open batch; null when it is empty. */
  seal(mode: Mode, wait?: WaitOptions): Promise<Batch | null>;
  /**
   * Makes slots of a sealed batch void that L1 refuses, so that the batch can be committed without them: their mints have failed, with
   * these reasons. Rejects with `batch_committed` once L1 has the batch. The caller answers for it that nothing sent earlier can
   * still commit the batch as it was; the settlement layer makes sure of that.
   */
  voidSlots(mode: Mode, batchNumber: number, slots: readonly VoidSlots[], wait?: WaitOptions): Promise<Batch>;
  openBatch(mode: Mode): Batch;
  batch(mode: Mode, batchNumber: number): Promise<Batch>;
  /** Newest first; of both modes when none is named. */
  batches(filter?: BatchFilter): List<Batch>;
  sealedBatch(mode: Mode, batchNumber: number): Promise<SealedBatch>;
  vaultContent(vaultId: VaultId): Promise<VaultContent>;
  /** Over all sealed batches. */
  state(): EngineState;
  /** Over the batches that L1 has committed. */
  committedState(): Promise<EngineState>;
  /**
   * One hash over the batches that L1 has committed, in L1's order: what the contract's `history` must be, derived from this store alone.
   * The next commit names it (docs/protocol.md 3).
   */
  history(): Hash;
}
