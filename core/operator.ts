import type { WaitOptions } from "./abort.ts";
import type { Batches } from "./batches/batches.ts";
import { type LeftOut, leaveOut } from "./batches/left-out.ts";
import { sealOpenBatch } from "./batches/seal.ts";
import { voidSlots } from "./batches/void-slots.ts";
import type { MintmarkError } from "./errors.ts";
import { type AdoptingOptions, adopt } from "./l1/adoption/adopt.ts";
import type { Adopted } from "./l1/adoption/adopted-batches.ts";
import type { AdoptedBatches } from "./l1/adoption/incoming.ts";
import { recordSubmitted } from "./l1/progress/batch-progress.ts";
import { type Checkpoint, checkpoints, type ReadOptions } from "./l1/progress/checkpoints.ts";
import { compareState } from "./l1/progress/divergence.ts";
import { recordFinalized, recordReorg } from "./l1/progress/finality.ts";
import { recordEvents } from "./l1/progress/l1-events.ts";
import { addMirror, type FollowedPortal, portalOf, portals } from "./l1/progress/portals.ts";
import type { Proofs } from "./l1/progress/proofs.ts";
import { recordRefusals, type VaultRefusal } from "./l1/progress/refusals.ts";
import {
  type PendingOptions,
  type PendingWithdrawal,
  pendingWithdrawal,
  pendingWithdrawals,
} from "./l1/withdrawals/pending.ts";
import { recordWithdrawalAttempt, recordWithdrawalFailed, recordWithdrawalSubmitted } from "./l1/withdrawals/record.ts";
import type { EngineContext } from "./ledger/context.ts";
import type { List, PageOptions } from "./ledger/list.ts";
import { type VerifyOptions, type VerifyReport, verifyStore } from "./lifecycle/verify/verify.ts";
import { forgetIdempotencyKeys } from "./mint/forget-keys.ts";
import type { Asset, Batch, Hash, Mode, Uuid, Withdrawal } from "./model.ts";
import type { L1Event, L1State, PortalIdentity, Settlement } from "./ports.ts";
import type { VoidSlots } from "./sealing/void-runs.ts";
import { bringUp, type Copied, type CopyOptions, requireCopy } from "./store/journaled-store.ts";
import type { Journal } from "./store/ports.ts";
import { allAssets, markAssetRegistered, type RegisteredFacts, setMintingFault } from "./tenants/assets.ts";
import type { Deliveries } from "./tenants/events/webhooks.ts";
import { closeTransfers } from "./transfers/close.ts";
import { transferFault, waitingSince } from "./transfers/look.ts";
import { type TakeBackOptions, takeBackTransfers } from "./transfers/take-back.ts";
import { requireMode } from "./validate.ts";

export function operatorOf(context: EngineContext, webhooks: Deliveries): Operator {
  return {
    webhooks,
    assets: (page = {}) => allAssets(context, page),
    seal: async (mode, wait) => sealOpenBatch(context, requireMode(mode), wait?.signal),
    sealTransfers: async (wait) => closeTransfers(context.ledger, wait?.signal),
    takeBackTransfers: async (batchNumber, failure, options) =>
      takeBackTransfers(context.ledger, batchNumber, failure, options),
    waitingTransfersSince: () => waitingSince(context.ledger),
    transferFault: (batchNumber, l1Time) => transferFault(context.ledger, batchNumber, l1Time),
    voidSlots: async (mode, batchNumber, slots, wait) =>
      voidSlots(context.ledger, requireMode(mode), batchNumber, slots, wait?.signal),
    leaveOut: async (mode, batchNumber, assets, wait) =>
      leaveOut(context.ledger, requireMode(mode), batchNumber, assets, wait?.signal),
    recordRegistered: async (assetId, facts = {}, wait) => markAssetRegistered(context, assetId, facts, wait?.signal),
    recordMintingFault: async (assetId, fault, wait) => setMintingFault(context, assetId, fault, wait?.signal),
    recordRefusals: async (mode, batchNumber, refusals, wait) =>
      recordRefusals(context.ledger, requireMode(mode), batchNumber, refusals, wait?.signal),
    history: () => context.ledger.commits.of(context.ledger),
    forgetIdempotencyKeys: async (before, wait) => forgetIdempotencyKeys(context, before, wait?.signal),
    backup: async (journal, how = {}) => {
      const { store } = context.ledger;
      const copied = await bringUp(store, journal, how);
      await requireCopy(store, journal, how);
      return copied;
    },
    verify: async (how = {}) => {
      const { store, settlement, blobs } = context.ledger;
      return verifyStore(store, settlement, how, (blob) => blobs.kzg.commitment(blob));
    },
    clockFault: () => context.ledger.journalClock.fault(context.ledger.head.time),
    kzgFault: () => context.ledger.blobs.fault,
    threadFault: () => context.ledger.sealingThread.fault ?? context.ledger.signers.fault,
    reachedTime: () => context.ledger.journalClock.reached(),
    placeInBlobs: (chainId, takesBlobs) => context.ledger.blobs.place(chainId, takesBlobs),
    rollupKind: () => context.ledger.blobs.usual,
    addMirror: async (mirror, wait) => addMirror(context.ledger, mirror, wait?.signal),
    portals: () => portals(context.ledger),
    portal: (chainId) => portalOf(context.ledger, chainId),
    recordSubmitted: async (mode, batchNumber, txHash, wait) =>
      recordSubmitted(context.ledger, requireMode(mode), batchNumber, txHash, wait?.signal),
    recordEvents: async (chainId, events, toBlock, options) =>
      recordEvents(context.ledger, chainId, events, toBlock, options),
    recordFinalized: async (chainId, blockNumber, options) =>
      recordFinalized(context.ledger, chainId, blockNumber, options),
    checkpoints: (chainId) => checkpoints(context.ledger, chainId),
    recordReorg: async (chainId, blockNumber, wait) =>
      recordReorg(context.ledger, chainId, blockNumber, "above final", wait?.signal),
    recordDeepReorg: async (chainId, blockNumber, wait) =>
      recordReorg(context.ledger, chainId, blockNumber, "below final", wait?.signal),
    divergence: () => context.ledger.divergence,
    awaitComparison: () => {
      context.ledger.awaitsComparison = true;
    },
    requirePromising: () => context.ledger.requirePromising(),
    adopt: async (adopted, options) => adopt(context, adopted, options),
    compareState: async (state, wait) => compareState(context.ledger, state, wait?.signal),
    recordWithdrawalSubmitted: async (withdrawalId, txHash, wait) =>
      recordWithdrawalSubmitted(context.ledger, withdrawalId, txHash, wait?.signal),
    recordWithdrawalAttempt: async (withdrawalId, failure, wait) =>
      recordWithdrawalAttempt(context.ledger, withdrawalId, failure, wait?.signal),
    recordWithdrawalFailed: async (withdrawalId, failure, l1Time, wait) =>
      recordWithdrawalFailed(context.ledger, withdrawalId, failure, l1Time, wait?.signal),
    reorganisations: () => context.ledger.reorganisations,
    pendingWithdrawals: (chainId, options) => pendingWithdrawals(context.ledger, chainId, options),
    pendingWithdrawal: (withdrawalId) => pendingWithdrawal(context.ledger, withdrawalId),
  };
}

/** The engine as the settlement loops see it. They can neither mint nor see a tenant. */
export interface SettlementPort {
  /** The contract that receives the commits. */
  readonly settlement: Settlement;
  readonly batches: Batches;
  readonly proofs: Proofs;
  readonly operator: Operator;
}

/**
 * The methods for the operator and the settlement loops. Each `record…` method records an observation of L1 as one
 * atomic, journaled transition; repeats change nothing.
 *
 * @example
 * const { problems } = await engine.operator.verify();
 * await engine.operator.seal("zk-rollup");
 */
export interface Operator {
  readonly webhooks: Deliveries;
  /** Every known asset, with `enabled` false, in the order of addition. */
  assets(page?: PageOptions): List<Asset>;
  /** Closes the mode's open batch; null when it is empty. */
  seal(mode: Mode, wait?: WaitOptions): Promise<Batch | null>;
  /**
   * Puts the waiting transfers that one commit carries into a rollup batch, behind the open ones, which it closes. The
   * transfers' new vaults have their ids from then on. Null when nothing waits.
   */
  sealTransfers(wait?: WaitOptions): Promise<Batch | null>;
  /**
   * Takes a sealed batch of transfers back that L1 does not take; its number is committed with void slots. The transfers
   * wait for another batch, or fail. Rejects with `batch_committed` once L1 has it. The caller must ensure that no earlier
   * transaction can still commit it.
   */
  takeBackTransfers(batchNumber: number, failure: string, options?: TakeBackOptions): Promise<Batch>;
  /** When the oldest transfers without a batch were taken, in milliseconds since 1970; null when none wait. */
  waitingTransfersSince(): Promise<number | null>;
  /**
   * Why a sealed batch of transfers must not go to L1 now; null when it may.
   *
   * @param l1Time - seconds of L1's newest block
   */
  transferFault(batchNumber: number, l1Time: bigint): Promise<string | null>;
  /**
   * Makes slots void that L1 refuses, so the batch can be committed without them. Their mints fail with these reasons.
   * Rejects with `batch_committed` once L1 has the batch. The caller must ensure that no earlier transaction can still
   * commit the unchanged batch; the settlement loops do.
   */
  voidSlots(mode: Mode, batchNumber: number, slots: readonly VoidSlots[], wait?: WaitOptions): Promise<Batch>;
  /**
   * Records exactly which assets of a sealed batch L1 will leave out for lack of a consent, with reasons. When the
   * commit is final, the mints of assets that L1 left out fail. Rejects with `batch_committed` once L1 has the batch.
   */
  leaveOut(mode: Mode, batchNumber: number, assets: readonly LeftOut[], wait?: WaitOptions): Promise<Batch>;
  /** Records that the asset is in L1's registry. */
  recordRegistered(assetId: Uuid, facts?: RegisteredFacts, wait?: WaitOptions): Promise<Asset>;
  /**
   * Records why L1 would refuse mints of the asset; null when it would not. While there is a fault, mints of the asset
   * are refused with `mint_unwithdrawable`, and its `unavailableReason` names the fault.
   */
  recordMintingFault(assetId: Uuid, fault: string | null, wait?: WaitOptions): Promise<Asset>;
  /**
   * Records which vaults of a committed batch their tokens would refuse now, and which no longer. Vaults show it as
   * `refusal`, until they are withdrawn.
   */
  recordRefusals(mode: Mode, batchNumber: number, refusals: readonly VaultRefusal[], wait?: WaitOptions): Promise<void>;
  /**
   * One hash over the batches that L1 has committed, in L1's order, from this store alone. The contract's `history`
   * must be equal. The next commit names it (docs/protocol.md 3).
   */
  history(): Hash;
  /**
   * Deletes the idempotency keys of mints before `before` (milliseconds since 1970); the mints stay. Other mints
   * continue meanwhile. A repeated request then mints anew, so keep the keys for the time promised to callers. Resolves
   * with the number of keys. An aborted `signal` stops it between two steps.
   */
  forgetIdempotencyKeys(before: number, wait?: WaitOptions): Promise<number>;
  /**
   * Copies the journal's missing entries to a backup while the engine runs, and compares the whole backup with the
   * journal. `restoreStore` makes a store from it.
   *
   * @throws MintmarkError `store_mismatch` for the backup of another store, `store_corrupt` for a damaged one
   */
  backup(journal: Journal, options?: CopyOptions): Promise<Copied>;
  /** Derives every record from the journal by a second implementation and compares it. Finds any flipped byte. */
  verify(options?: VerifyOptions): Promise<VerifyReport>;
  /** The fault of the system's clock, with the remedy; null when it fits the journal. */
  clockFault(): string | null;
  /** Why closed batches in blobs wait for KZG, with code `kzg_unavailable`; null while none waits. */
  kzgFault(): MintmarkError | null;
  /** Why batches are derived, or signatures found, on the event loop; null while their threads run, or can. */
  threadFault(): Error | null;
  /**
   * A time in milliseconds since 1970 that has certainly passed, even if the system's clock is wrong. It lags by the
   * time for which nothing ran. Use it for things that must not expire too early.
   */
  reachedTime(): number;
  /**
   * From the next mint on, rollup vaults of this chain's tokens go into blobs, or no longer. They do if the settlement
   * chain and the token's chain both take them, and the minting blob fits; default: no chain does. Each batch keeps the
   * kind that it opened with.
   */
  placeInBlobs(chainId: bigint, takesBlobs: boolean): void;
  /** The kind of rollup batch that the usual vaults of the settlement chain's tokens go into. */
  rollupKind(): "calldata" | "blobs";
  /** Adds a mirror: accepts withdrawals on its chain. Rejects with `store_mismatch` for a chain's second mirror. */
  addMirror(mirror: PortalIdentity, wait?: WaitOptions): Promise<void>;
  /** The contracts that pay withdrawals, by chain: the settlement contract, then the mirrors. */
  portals(): readonly FollowedPortal[];
  /** The contract on a chain. Throws `chain_not_supported`. */
  portal(chainId: bigint): FollowedPortal;
  /** Records a sent transaction that commits the batch. */
  recordSubmitted(mode: Mode, batchNumber: number, txHash: Hash, wait?: WaitOptions): Promise<Batch>;
  /**
   * Applies a chain's events from the last observed block up to `toBlock`, in order, all or nothing. Rejects with
   * `history_diverged` for events that this store cannot have caused; on a mirror's chain with `l1_failed`.
   */
  recordEvents(chainId: bigint, events: readonly L1Event[], toBlock: bigint, options?: ReadOptions): Promise<void>;
  /** Records that everything up to this block is final. */
  recordFinalized(chainId: bigint, blockNumber: bigint, options?: ReadOptions): Promise<void>;
  /** Blocks that were read or final, with their hashes then; newest first. Keeps the newest 64 final ones. */
  checkpoints(chainId: bigint): AsyncIterable<Checkpoint>;
  /** Blocks from this one on were replaced: what they settled is submitted again, and reading restarts before them. */
  recordReorg(chainId: bigint, blockNumber: bigint, wait?: WaitOptions): Promise<void>;
  /** The same for a chain that replaced blocks recorded as final. */
  recordDeepReorg(chainId: bigint, blockNumber: bigint, wait?: WaitOptions): Promise<void>;
  /** How L1's history differs from this store's, since when (milliseconds since 1970); null while equal. */
  divergence(): { readonly detail: string; readonly since: number } | null;
  /** Refuses mints and withdrawals with `l1_not_compared` until {@link Operator.compareState} succeeds. */
  awaitComparison(): void;
  /** Throws the error that mints would get now: `history_diverged`, `l1_not_compared`. */
  requirePromising(): void;
  /**
   * Requires that L1's batches are the first ones of this store. Otherwise it rejects with `history_diverged`, and from
   * then on mints, withdrawals and seals are refused with that code, even after a restart.
   *
   * Resolves with false when it needs the events of unrecorded commits first, because L1 may have left assets out of
   * them. Record these, then compare again.
   */
  compareState(state: L1State, wait?: WaitOptions): Promise<boolean>;
  /**
   * Replaces the store's batches by L1's, from the first difference of each mode on, and ends the divergence, in one
   * atomic step. Mints that L1's history lacks fail, and their applications get events. Vaults of unknown owners go to
   * an application of their own, `Adopted from L1`. Vaults that L1 never pays become void. Rejects with
   * `asset_not_found` for an asset that neither the store nor `assets` has, `l1_failed` for data that do not match their
   * root. `adoptFromL1` collects batches and assets.
   */
  adopt(adopted: readonly AdoptedBatches[], options?: AdoptingOptions): Promise<Adopted>;
  /** Records a sent transaction that pays the withdrawal. */
  recordWithdrawalSubmitted(withdrawalId: Uuid, txHash: Hash, wait?: WaitOptions): Promise<Withdrawal>;
  /** Records that L1 refused an attempt. The authorization is still valid, so the reservation stays. */
  recordWithdrawalAttempt(withdrawalId: Uuid, failure: string, wait?: WaitOptions): Promise<Withdrawal>;
  /**
   * Fails the withdrawal and releases its reservation. Rejects with `withdrawal_pending` while the authorization can
   * still be used: until `l1Time`, seconds of a final block, is past its deadline, or L1 has cancelled or overtaken it.
   */
  recordWithdrawalFailed(withdrawalId: Uuid, failure: string, l1Time: bigint, wait?: WaitOptions): Promise<Withdrawal>;
  /** Number of reorganisations of all chains since the opening. When it changes, earlier reads may be outdated. */
  reorganisations(): number;
  /** Withdrawals of a chain's tokens that are neither settled nor failed, oldest first. */
  pendingWithdrawals(chainId: bigint, options?: PendingOptions): AsyncIterable<PendingWithdrawal>;
  /** One pending withdrawal; null once settled or failed. */
  pendingWithdrawal(withdrawalId: Uuid): Promise<PendingWithdrawal | null>;
}
