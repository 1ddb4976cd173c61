import type { WaitOptions } from "./abort.ts";
import { type AdoptingOptions, adopt } from "./adoption/adopt.ts";
import type { AdoptedBatches } from "./adoption/incoming.ts";
import type { Batches } from "./batches/batches.ts";
import { sealOpenBatch } from "./batches/seal.ts";
import { leaveOut, voidSlots } from "./batches/void-slots.ts";
import { enteredSlots } from "./deposits/makings.ts";
import type { EngineContext } from "./ledger/context.ts";
import type { Ledger } from "./ledger/ledger.ts";
import type { PageOptions } from "./ledger/list.ts";
import {
  forgetIdempotencyKeys,
  type KeyedRequest,
  keepRequest,
  requireSameRequest,
} from "./mint/idempotency.ts";
import type { Mode, Uuid } from "./model.ts";
import type { Settlement } from "./ports.ts";
import { compareState, recordRefusals, recordSubmitted } from "./progress/batch-progress.ts";
import type { Proofs } from "./progress/exit-proofs.ts";
import { recordFinalized } from "./progress/finality.ts";
import { recordEvents } from "./progress/l1-events.ts";
import { addMirror, checkpoints, type FollowedPortal, portals } from "./progress/portals.ts";
import { recordReorg } from "./progress/reorganisation.ts";
import { backup, type CopyOptions } from "./store/backup.ts";
import type { Journal } from "./store/ports.ts";
import {
  allAssets,
  markAssetRegistered,
  type RegisteredFacts,
  setMintingFault,
} from "./tenants/assets.ts";
import { faultOfBatch } from "./transfers/judge.ts";
import { closeTransfers, takeBackTransfers, waitingSince } from "./transfers/transfer-batch.ts";
import { requireMode } from "./validate.ts";
import { type VerifyOptions, verifyStore } from "./verify/verify.ts";
import { verifyOnThread } from "./verify/verify-thread.ts";
import type { Deliveries } from "./webhooks/webhooks.ts";
import {
  pendingWithdrawal,
  pendingWithdrawals,
  recordWithdrawalAttempt,
  recordWithdrawalFailed,
  recordWithdrawalSubmitted,
} from "./withdrawals/pending.ts";

/**
 * The methods for the operator and the settlement loops. Each `record…` method records an
 * observation of L1 as one atomic, journaled transition; repeats change nothing.
 *
 * @example
 * const { problems } = await engine.operator.verify();
 * await engine.operator.seal("zk-rollup");
 */
export type Operator = ReturnType<typeof operatorOf>;

/** Most entries of the journal, and transactions, of a store that is verified on the event loop. */
const SMALL = 4_096;

function isSmall({ journal, tenants }: Ledger): boolean {
  const counts = [...tenants.applications.durable.values()].map(({ nextSequence }) => nextSequence);
  const transactions = counts.reduce((sum, count) => sum + count, 0);
  return journal.head.durable.journalLength <= SMALL && transactions <= SMALL;
}

export function operatorOf(context: EngineContext, webhooks: Deliveries) {
  const { ledger } = context;
  /** A function of the ledger as a method. */
  const ofLedger =
    <Given extends readonly unknown[], Result>(
      method: (ledger: Ledger, ...given: Given) => Result,
    ) =>
    (...given: Given) =>
      method(ledger, ...given);
  return {
    webhooks,
    /** Every known asset, with `enabled` false, in the order of addition. */
    assets: (page: PageOptions = {}) => allAssets(context, page),
    /** Closes the mode's open batch; null when it is empty. */
    seal: async (mode: Mode, wait?: WaitOptions) =>
      sealOpenBatch(context, requireMode(mode), wait?.signal),
    /**
     * Puts the waiting transfers that one commit carries into a rollup batch, behind the open ones,
     * which it closes. The transfers' new vaults have their ids from then on. Null when nothing
     * waits.
     */
    sealTransfers: ofLedger(closeTransfers),
    /**
     * Takes a sealed batch of transfers back that L1 does not take; its number is committed with
     * void slots. The transfers wait for another batch, or fail. Rejects with `batch_committed`
     * once L1 has it. The caller must ensure that no earlier transaction can still commit it.
     */
    takeBackTransfers: ofLedger(takeBackTransfers),
    /**
     * When the oldest transfers without a batch were taken, in milliseconds since 1970; null when
     * none wait.
     */
    waitingTransfersSince: ofLedger(waitingSince),
    /**
     * Why a sealed batch of transfers must not go to L1 now; null when it may.
     *
     * @param l1Time - seconds of L1's newest block
     */
    transferFault: ofLedger(faultOfBatch),
    /**
     * Makes slots void that L1 refuses, so the batch can be committed without them. Their mints
     * fail with these reasons. Rejects with `batch_committed` once L1 has the batch. The caller
     * must ensure that no earlier transaction can still commit the unchanged batch; the settlement
     * loops do.
     */
    voidSlots: ofLedger(voidSlots),
    /**
     * The slots of a sealed batch whose tokens came back from L1 by entries of their own, so that
     * their vaults would never count there; with the reason.
     */
    enteredSlots: ofLedger(enteredSlots),
    /**
     * Records exactly which assets of a sealed batch L1 will leave out for lack of a consent, with
     * reasons. When the commit is final, the mints of assets that L1 left out fail. Rejects with
     * `batch_committed` once L1 has the batch.
     */
    leaveOut: ofLedger(leaveOut),
    /** Records that the asset is in L1's registry. */
    recordRegistered: async (assetId: Uuid, facts: RegisteredFacts = {}, wait?: WaitOptions) =>
      markAssetRegistered(context, assetId, facts, wait),
    /**
     * Records why L1 would refuse mints of the asset; null when it would not. While there is a
     * fault, mints of the asset are refused with `mint_unwithdrawable`, and its `unavailableReason`
     * names the fault.
     */
    recordMintingFault: async (assetId: Uuid, fault: string | null, wait?: WaitOptions) =>
      setMintingFault(context, assetId, fault, wait),
    /**
     * Records which vaults of a committed batch their tokens would refuse now, and which no longer.
     * Vaults show it as `refusal`, until they are withdrawn.
     */
    recordRefusals: ofLedger(recordRefusals),
    /**
     * One hash over the batches that L1 has committed, in L1's order, from this store alone. The
     * contract's `history` must be equal. The next commit names it (docs/protocol.md 3).
     */
    history: () => ledger.batches.commits.of(ledger.services.settlement, ledger.batches),
    /**
     * Throws `idempotency_key_reused` if another request than this was done under the caller's key.
     * A mint looks by itself.
     */
    requireSameRequest: async (request: KeyedRequest) => requireSameRequest(ledger, request),
    /**
     * Keeps the digest of a request that was done, so that the key names no other one. Throws as
     * `requireSameRequest` does.
     */
    keepRequest: async (request: KeyedRequest, wait?: WaitOptions) =>
      keepRequest(context, request, wait?.signal),
    /**
     * Deletes the idempotency keys of requests before `before` (milliseconds since 1970); what they
     * made stays. Mints continue meanwhile. A repeated request then mints anew, so keep the keys
     * for the time promised to callers. Resolves with the number of keys. An aborted `signal` stops
     * it between two steps.
     */
    forgetIdempotencyKeys: async (before: number, wait?: WaitOptions) =>
      forgetIdempotencyKeys(context, before, wait?.signal),
    /**
     * Copies the journal's missing entries to a backup while the engine runs, and compares the
     * whole backup with the journal. `restoreStore` makes a store from it.
     *
     * @throws MintmarkError `store_mismatch` for the backup of another store, `store_corrupt` for a
     *   damaged one
     */
    backup: async (journal: Journal, how?: CopyOptions) => backup(ledger.store, journal, how),
    /**
     * Derives every record from the journal by a second implementation and compares it. Finds any
     * flipped byte. Works on a snapshot and on a thread of its own, so the engine continues.
     */
    verify: async (how: VerifyOptions = {}) => {
      // The thread would take longer to start than a small store takes.
      const verified = isSmall(ledger) ? verifyStore : verifyOnThread;
      return verified(ledger.store, ledger.services.settlement, how, (blob) =>
        ledger.batches.blobs.kzg.commitment(blob),
      );
    },
    /** The fault of the system's clock, with the remedy; null when it fits the journal. */
    clockFault: () => ledger.journal.clock.fault(ledger.journal.head.durable.time),
    /**
     * Why closed batches in blobs wait for KZG, with code `kzg_unavailable`; null while none waits.
     */
    kzgFault: () => ledger.batches.blobs.fault,
    /**
     * Why batches are derived, or signatures found, on the event loop; null while their threads
     * run, or can.
     */
    threadFault: () => ledger.services.sealingThread.fault ?? ledger.services.signers.fault,
    /**
     * A time in milliseconds since 1970 that has certainly passed, even if the system's clock is
     * wrong. It lags by the time for which nothing ran. Use it for things that must not expire too
     * early.
     */
    reachedTime: () => ledger.journal.clock.reached(),
    /**
     * Whether a chain takes blobs: rollup batches go into blobs if the settlement chain does, from
     * the next seal on. Without an answer they go into calldata. Tokens of another chain can be
     * minted in rollup batches only if that chain has the precompile 0x0a, which opens blobs; until
     * it is known, their mints are `rollup_not_available`.
     */
    placeInBlobs: (chainId: bigint, takesBlobs: boolean) =>
      ledger.batches.blobs.place(chainId, takesBlobs),
    /** The kind of rollup batch that a seal makes now. */
    rollupKind: () => ledger.batches.blobs.kind,
    /**
     * Adds a mirror: accepts withdrawals on its chain. Rejects with `store_mismatch` for a chain's
     * second mirror.
     */
    addMirror: ofLedger(addMirror),
    /** The contracts that pay withdrawals, by chain: the settlement contract, then the mirrors. */
    portals: ofLedger(portals),
    /** The contract on a chain. Throws `chain_not_supported`. */
    portal: (chainId: bigint): FollowedPortal => ledger.l1.portalOn(chainId, null),
    /** Records a sent transaction that commits the batch. */
    recordSubmitted: ofLedger(recordSubmitted),
    /**
     * Applies a chain's events from the last observed block up to `toBlock`, in order, all or
     * nothing; with `fromBlock`, also those of observed blocks that were left out before. Returns
     * their number; null, and then nothing has changed, when L1's counts show that earlier events
     * are missing. Rejects with `history_diverged` for events that this store cannot have caused,
     * on a mirror's chain with `l1_failed`; with `l1_failed` too when a recorded event is missing.
     */
    recordEvents: ofLedger(recordEvents),
    /** Records that everything up to this block is final. */
    recordFinalized: ofLedger(recordFinalized),
    /**
     * Blocks that were read or final, with their hashes then; newest first. Keeps the newest 64
     * final ones.
     */
    checkpoints: ofLedger(checkpoints),
    /**
     * Blocks from this one on were replaced. What they settled is submitted again. Reading restarts
     * before them. Rejects with `l1_failed` for blocks recorded as final, unless the reach is
     * "below final".
     */
    recordReorg: ofLedger(recordReorg),
    /**
     * How L1's history differs from this store's, since when (milliseconds since 1970); null while
     * equal, and until a second look has confirmed it.
     */
    divergence: () => ledger.l1.divergence,
    /**
     * Refuses mints and withdrawals with `l1_not_compared` until {@link Operator.compareState}
     * succeeds.
     */
    awaitComparison: () => {
      ledger.l1.awaitsComparison = true;
    },
    /** Throws the error that mints would get now: `history_diverged`, `l1_not_compared`. */
    requirePromising: () => ledger.l1.requirePromising(),
    /**
     * Requires that L1's batches are the first ones of this store. Otherwise it rejects with
     * `history_diverged`, and from then on mints, withdrawals and seals are refused with that code.
     * When L1 still says so `divergenceMs` later, and never agreed meanwhile, that lasts, even
     * after a restart.
     *
     * Resolves with false when it needs the events of unrecorded commits first, because L1 may have
     * left assets out of them. Record these, then compare again.
     */
    compareState: ofLedger(compareState),
    /**
     * Replaces the store's batches by L1's, from the first difference of each mode on, and ends the
     * divergence, in one atomic step. Mints that L1's history lacks fail, and their applications
     * get events. Vaults of unknown owners go to an application of their own, `Adopted from L1`.
     * Vaults that L1 never pays become void. Rejects with `asset_not_found` for an asset that
     * neither the store nor `assets` has, `l1_failed` for data that do not match their root.
     * `adoptFromL1` collects batches and assets.
     */
    adopt: async (adopted: readonly AdoptedBatches[], options?: AdoptingOptions) =>
      adopt(context, adopted, options),
    /** Records a sent transaction that pays the withdrawal. */
    recordWithdrawalSubmitted: ofLedger(recordWithdrawalSubmitted),
    /**
     * Records that L1 refused an attempt. The authorization is still valid, so the reservation
     * stays.
     */
    recordWithdrawalAttempt: ofLedger(recordWithdrawalAttempt),
    /**
     * Fails the withdrawal and releases its reservation. Rejects with `withdrawal_pending` while
     * the authorization can still be used: until `l1Time`, seconds of a final block, is past its
     * deadline, or L1 has cancelled or overtaken it.
     */
    recordWithdrawalFailed: ofLedger(recordWithdrawalFailed),
    /**
     * Number of reorganisations of all chains since the opening. When it changes, earlier reads may
     * be outdated.
     */
    reorganisations: () => ledger.l1.reorganisations,
    /** Number of signatures since the opening that took the place of ones that L1 refused. */
    betterSignatures: () => ledger.l1.betterSignatures,
    /** Withdrawals of a chain's tokens that are neither settled nor failed, oldest first. */
    pendingWithdrawals: ofLedger(pendingWithdrawals),
    /** One pending withdrawal; null once settled or failed. */
    pendingWithdrawal: ofLedger(pendingWithdrawal),
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
