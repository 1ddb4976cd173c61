import type { Hash, Mode, VaultId } from "./model.ts";
import type { BatchHeader, VaultContent } from "./ports.ts";
import type { StateCounts, StateRoots } from "./protocol/commitment.ts";
import type { BatchProof, StateConsistencyProof } from "./protocol/consistency.ts";
import type { StatePath, VaultMultiproof } from "./protocol/proof.ts";

/** A vault's path to its batch's root; `header` is null until L1 has committed the batch. */
export interface VaultProof {
  readonly vault: VaultContent;
  readonly vaultCount: number;
  readonly batchRoot: Hash;
  readonly leaf: Hash;
  /** From the leaf upwards, ceil(log2 vaultCount) of them. */
  readonly siblings: readonly Hash[];
  readonly header: BatchHeader | null;
}

/** Many vaults' one path to their batch's root. */
export interface BatchMultiproof extends VaultMultiproof {
  readonly batchRoot: Hash;
  readonly header: BatchHeader | null;
}

/** The append-only state over the first batches of each mode. */
export interface EngineState extends StateRoots {
  readonly commitment: Hash;
}

/** A vault's path all the way to a state commitment: `verifyVaultInState` of `mintmark/protocol` checks it. */
export interface VaultStateProof {
  readonly proof: VaultProof;
  readonly path: StatePath;
  readonly commitment: Hash;
}

/** One batch's step of its mode's state tree: `verifyBatchProof` checks it. */
export interface BatchTransition {
  readonly oldRoot: Hash;
  readonly newRoot: Hash;
  readonly proof: BatchProof;
}

/** That a later state begins with all batches of an earlier one: `verifyStateConsistency` checks it. */
export interface StateExtension {
  readonly older: EngineState;
  readonly newer: EngineState;
  readonly proof: StateConsistencyProof;
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
  vaultProof(vaultId: VaultId): Promise<VaultProof>;
  /**
   * The same under the header by which the contract that pays the vault keeps the batch: a mirror's own for a token of another chain.
   * `header` is null while that contract does not know the batch.
   */
  exitProof(vaultId: VaultId): Promise<VaultProof>;
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
