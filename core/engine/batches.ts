import type { WaitOptions } from "../abort.ts";
import {
  type BatchFilter,
  batchView,
  committedCount,
  findBatch,
  listBatches,
  openBatch,
  sealedBatch,
  sealedCount,
  stateOver,
  uncommittedVaults,
  vaultContent,
} from "../batches/batches.ts";
import {
  type BatchMultiproof,
  type BatchTransition,
  batchProof,
  consistencyProof,
  type StateExtension,
  vaultMultiproof,
  vaultProof,
  vaultStateProof,
} from "../batches/proofs.ts";
import { sealOpenBatch } from "../batches/seal.ts";
import { voidSlots } from "../batches/void-slots.ts";
import { type List, listOf } from "../ledger/list.ts";
import type { Batch, Hash, Mode, VaultId } from "../model.ts";
import type { SealedBatch, VaultContent } from "../ports.ts";
import { exitProof } from "../progress/exit-proof.ts";
import type { StateCounts } from "../protocol/commitment.ts";
import type { BatchVaultProof, EngineState, VaultStateProof } from "../protocol/proof.ts";
import type { VoidSlots } from "../sealing/void-runs.ts";
import { type EngineContext, requireMode } from "./context.ts";

export function batches(context: EngineContext): Batches & Proofs {
  return {
    seal: async (mode, wait) => sealOpenBatch(context.ledger, requireMode(mode), wait?.signal),
    voidSlots: async (mode, batchNumber, slots, wait) =>
      voidSlots(context.ledger, requireMode(mode), batchNumber, slots, wait?.signal),
    openBatch: (mode) => openBatch(context.ledger, requireMode(mode)),
    async batch(mode, batchNumber) {
      const open = openBatch(context.ledger, requireMode(mode));
      return open.batchNumber === batchNumber ? open : batchView(findBatch(context.ledger, mode, batchNumber));
    },
    batches: (filter = {}) => listOf(filter, async (at) => listBatches(context.ledger, context.cursors, at)),
    sealedBatch: async (mode, batchNumber) => sealedBatch(context.ledger, requireMode(mode), batchNumber),

    vaultContent: async (vaultId) => vaultContent(context.ledger, vaultId),
    vaultProof: async (vaultId) => vaultProof(context.ledger, vaultId),
    exitProof: async (vaultId) => exitProof(context.ledger, vaultId),
    vaultMultiproof: async (vaultIds) => vaultMultiproof(context.ledger, vaultIds),
    vaultStateProof: async (vaultId, at) => vaultStateProof(context.ledger, vaultId, at),
    batchProof: async (mode, batchNumber) => batchProof(context.ledger, requireMode(mode), batchNumber),
    consistencyProof: async (older, newer) => consistencyProof(context.ledger, older, newer),

    state() {
      const { ledger } = context;
      return stateOver(ledger, sealedCount(ledger, "validium"), sealedCount(ledger, "zk-rollup"));
    },
    history: () => context.ledger.commits.of(context.ledger),
    async committedState() {
      const { ledger } = context;
      return stateOver(ledger, committedCount(ledger, "validium"), committedCount(ledger, "zk-rollup"));
    },
    uncommittedVaults: () => uncommittedVaults(context.ledger),
  };
}

/**
 * Proofs of what sealed batches hold, docs/protocol.md 7; public, without tenants. Each is verified before it is returned, by the
 * functions of `mintmark/protocol` that its reader has too. Until L1 has committed a batch, slots of it can still become void, and
 * what was proven of it and of states that hold it goes stale.
 *
 * All reject with `proof_not_ready` while a batch that they are about is open, with `vault_not_found`, `vault_void` or `batch_not_found`
 * when there is nothing to prove.
 */
export interface Proofs {
  vaultProof(vaultId: VaultId): Promise<BatchVaultProof>;
  /**
   * The same under the header by which the contract that pays the vault keeps the batch: a mirror's own for a token of another chain.
   * `header` is null while that contract does not know the batch.
   */
  exitProof(vaultId: VaultId): Promise<BatchVaultProof>;
  /**
   * One proof for many vaults of one batch, in whatever order they are named; shared siblings are given once. Rejects with
   * `validation_failed` for none, for one named twice, and for vaults of several batches.
   */
  vaultMultiproof(vaultIds: readonly VaultId[]): Promise<BatchMultiproof>;
  /** @param at - batches of each mode that the commitment is over; default all that are sealed */
  vaultStateProof(vaultId: VaultId, at?: StateCounts): Promise<VaultStateProof>;
  /** That the batch was appended to the batches before it. Shows extension, not acceptance by L1. */
  batchProof(mode: Mode, batchNumber: number): Promise<BatchTransition>;
  /**
   * Rejects with `validation_failed` unless both modes' counts of `older` are at most those of `newer`, and these at most those sealed.
   *
   * @param newer - default all that are sealed
   */
  consistencyProof(older: StateCounts, newer?: StateCounts): Promise<StateExtension>;
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
  /** Vaults of the batches that L1 has not committed, the open ones included; what `limits.uncommittedVaults` bounds. */
  uncommittedVaults(): number;
  /**
   * One hash over the batches that L1 has committed, in L1's order: what the contract's `history` must be, derived from this store alone.
   * The next commit names it (docs/protocol.md 3).
   */
  history(): Hash;
}
