import type { Batch, Hash, Mode, Standard, Uuid, Withdrawal } from "./model.ts";
import type { L1Event, WithdrawalCall } from "./ports.ts";
import type { WaitOptions } from "./wait-types.ts";

/** A withdrawal that can be sent to L1 once its vault has matured. */
export interface PendingWithdrawal {
  readonly withdrawal: Withdrawal;
  readonly standard: Standard;
  readonly call: WithdrawalCall;
}

/** What the settlement layer saw; each call is one atomic, journaled transition, and repeating it changes nothing. */
export interface SettlementRecord {
  /** Last block whose events are applied; null before the first. */
  settlementCursor(): bigint | null;
  /** Last block that was recorded as final; null before the first. */
  settlementFinalized(): bigint | null;
  recordSubmitted(mode: Mode, batchNumber: number, txHash: Hash, wait?: WaitOptions): Promise<Batch>;
  /** Applies all events of the blocks after the cursor up to `toBlock`, in order, and moves the cursor: all or nothing. */
  recordEvents(events: readonly L1Event[], toBlock: bigint, wait?: WaitOptions): Promise<void>;
  /** One event of type `batchCommitted`, without moving the cursor. Root, count and data hash must be ours: else `l1_failed`. */
  recordCommitted(event: L1Event & { readonly type: "batchCommitted" }, wait?: WaitOptions): Promise<Batch>;
  /** One event of type `withdrawn`, without moving the cursor; of owners who withdrew by themselves too. */
  recordWithdrawn(event: L1Event & { readonly type: "withdrawn" }, wait?: WaitOptions): Promise<void>;
  /** Everything up to this block can no longer be reorganised away. */
  recordFinalized(blockNumber: bigint, wait?: WaitOptions): Promise<void>;
  /** Blocks from this one on are gone: what they settled is submitted again, the cursor goes back before them. */
  recordReorg(blockNumber: bigint, wait?: WaitOptions): Promise<void>;
  recordWithdrawalSubmitted(withdrawalId: Uuid, txHash: Hash, wait?: WaitOptions): Promise<Withdrawal>;
  /** L1 refused an attempt; the authorization is still good, so the reservation stays and `failure` tells the reason. */
  recordWithdrawalAttempt(withdrawalId: Uuid, failure: string, wait?: WaitOptions): Promise<Withdrawal>;
  /**
   * Gives up and releases the reservation. Refused with `withdrawal_pending` while the authorization could still be used: `l1Time`,
   * seconds of a finalized block, must be past its deadline, unless it was cancelled or overtaken on L1.
   */
  recordWithdrawalFailed(withdrawalId: Uuid, failure: string, l1Time: bigint, wait?: WaitOptions): Promise<Withdrawal>;
  /** Withdrawals that are neither settled nor failed and whose batch L1 has committed, oldest first. */
  pendingWithdrawals(): AsyncIterable<PendingWithdrawal>;
}
