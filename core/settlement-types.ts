import type { Batch, Hash, Hex, Mode, Standard, Uuid, Withdrawal } from "./model.ts";
import type { BatchHeader, L1Event, L1State, PortalIdentity, SealedBatch } from "./ports.ts";
import type { WaitOptions } from "./wait-types.ts";

/** A contract that pays withdrawals of its own chain's tokens, and how far that chain is followed. */
export interface FollowedPortal extends PortalIdentity {
  /** Last block whose events are applied; null before the first. */
  readonly observed: bigint | null;
  /** Last block that was recorded as final; null before the first. */
  readonly finalized: bigint | null;
}

/** A withdrawal that is to be sent to its token's chain. */
export interface PendingWithdrawal {
  readonly withdrawal: Withdrawal;
  readonly standard: Standard;
  /** The owner's, over the withdrawal. */
  readonly signature: Hex;
  /** How the contract there keeps the vault's batch, as in `exitProof`; null while it does not know the batch. */
  readonly header: BatchHeader | null;
}

export interface PendingOptions {
  /** Leaves out a withdrawal before it is read, which is most of what one costs. */
  readonly except?: (withdrawalId: Uuid) => boolean;
}

/** L1's batches of a mode from the first on that is another than the store's, or that the store lacks. */
export interface AdoptedBatches {
  readonly mode: Mode;
  readonly first: number;
  readonly batches: readonly SealedBatch[];
}

/** What adopting L1's history has changed. */
export interface Adopted {
  /** Batches that were taken from L1. */
  readonly batches: number;
  /** Vaults of this store that L1's history lacks, or of which it holds less. */
  readonly lostVaults: number;
}

/** What the settlement layer saw; each call is one atomic, journaled transition, and repeating it changes nothing. */
export interface SettlementRecord {
  /**
   * Makes the mirror of the state on another chain known, so that withdrawals of that chain's tokens are taken; `store_mismatch` for
   * another contract than the chain's first.
   */
  addMirror(mirror: PortalIdentity, wait?: WaitOptions): Promise<void>;
  /** What pays withdrawals, by chain: the settlement contract, then the mirrors. */
  portals(): readonly FollowedPortal[];
  /** The one of a chain. Throws `chain_not_supported`. */
  portal(chainId: bigint): FollowedPortal;
  recordSubmitted(mode: Mode, batchNumber: number, txHash: Hash, wait?: WaitOptions): Promise<Batch>;
  /** Applies all events of a chain's blocks after what is observed up to `toBlock`, in order, and moves on: all or nothing. */
  recordEvents(chainId: bigint, events: readonly L1Event[], toBlock: bigint, wait?: WaitOptions): Promise<void>;
  /** One event of type `batchCommitted`, without moving the cursor. Root, count and data hash must be ours: else `history_diverged`. */
  recordCommitted(event: L1Event & { readonly type: "batchCommitted" }, wait?: WaitOptions): Promise<Batch>;
  /** One event of type `withdrawn`, without moving the cursor; of owners who withdrew by themselves too. */
  recordWithdrawn(chainId: bigint, event: L1Event & { readonly type: "withdrawn" }, wait?: WaitOptions): Promise<void>;
  /** Everything up to this block can no longer be reorganised away. */
  recordFinalized(chainId: bigint, blockNumber: bigint, wait?: WaitOptions): Promise<void>;
  /** Blocks from this one on are gone: what they settled is submitted again, the cursor goes back before them. */
  recordReorg(chainId: bigint, blockNumber: bigint, wait?: WaitOptions): Promise<void>;
  /** The same for a chain that has replaced blocks that were recorded as final. */
  recordDeepReorg(chainId: bigint, blockNumber: bigint, wait?: WaitOptions): Promise<void>;
  /** How L1's history differs from this store's, in a sentence, and since when (ms); null while no difference was found. */
  divergence(): { readonly detail: string; readonly since: number } | null;
  /** From now on mints and withdrawals are refused with `l1_not_compared`, until {@link SettlementRecord.compareState} finds one history. */
  awaitComparison(): void;
  /** Throws what mints are refused with now: `history_diverged`, `l1_not_compared`. */
  requirePromising(): void;
  /**
   * Compares L1's state with the store's. Unless L1's batches are the first ones of this store, it rejects with `history_diverged`; from
   * then on, and after a restart, mints, withdrawals and seals are refused with that code.
   */
  compareState(state: L1State, wait?: WaitOptions): Promise<void>;
  /**
   * Puts L1's batches in the place of the store's, from the first difference of each mode on, and ends the divergence: atomic. Mints that L1's
   * history lacks have failed, and their applications are told. Vaults of owners whom the store does not know belong to an application
   * of their own, `Adopted from L1`. Rejects with `asset_not_found` for an asset that must be added first, `l1_failed` for data that do
   * not make their root. `adoptFromL1` of the settlement module gathers the batches.
   */
  adoptHistory(adopted: readonly AdoptedBatches[], wait?: WaitOptions): Promise<Adopted>;
  recordWithdrawalSubmitted(withdrawalId: Uuid, txHash: Hash, wait?: WaitOptions): Promise<Withdrawal>;
  /** L1 refused an attempt; the authorization is still good, so the reservation stays and `failure` tells the reason. */
  recordWithdrawalAttempt(withdrawalId: Uuid, failure: string, wait?: WaitOptions): Promise<Withdrawal>;
  /**
   * Gives up and releases the reservation. Refused with `withdrawal_pending` while the authorization could still be used: `l1Time`,
   * seconds of a finalized block, must be past its deadline, unless it was cancelled or overtaken on L1.
   */
  recordWithdrawalFailed(withdrawalId: Uuid, failure: string, l1Time: bigint, wait?: WaitOptions): Promise<Withdrawal>;
  /** Withdrawals of a chain's tokens that are neither settled nor failed, oldest first. */
  pendingWithdrawals(chainId: bigint, options?: PendingOptions): AsyncIterable<PendingWithdrawal>;
}
