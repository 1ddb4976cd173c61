import { recordSubmitted } from "../ledger/settlement/batch-progress.ts";
import { recordFinalized, recordReorg } from "../ledger/settlement/finality.ts";
import { recordCommitted, recordEvents, recordWithdrawn } from "../ledger/settlement/l1-events.ts";
import {
  pendingWithdrawals,
  recordWithdrawalAttempt,
  recordWithdrawalFailed,
  recordWithdrawalSubmitted,
} from "../ledger/settlement/withdrawals.ts";
import type { SettlementRecord } from "../settlement-types.ts";
import type { EngineContext } from "./context.ts";
import { requireMode } from "./requirements.ts";

export function settlementRecord(context: EngineContext): SettlementRecord {
  return {
    settlementCursor: () => context.ledger.durableHead.l1Observed,
    settlementFinalized: () => context.ledger.durableHead.l1Finalized,
    recordSubmitted: async (mode, batchNumber, txHash, wait) =>
      recordSubmitted(context.ledger, requireMode(mode), batchNumber, txHash, wait?.signal),
    recordEvents: async (events, toBlock, wait) => recordEvents(context.ledger, events, toBlock, wait?.signal),
    recordCommitted: async (event, wait) => recordCommitted(context.ledger, event, wait?.signal),
    recordWithdrawn: async (event, wait) => recordWithdrawn(context.ledger, event, wait?.signal),
    recordFinalized: async (blockNumber, wait) => recordFinalized(context.ledger, blockNumber, wait?.signal),
    recordReorg: async (blockNumber, wait) => recordReorg(context.ledger, blockNumber, wait?.signal),
    recordWithdrawalSubmitted: async (withdrawalId, txHash, wait) =>
      recordWithdrawalSubmitted(context.ledger, withdrawalId, txHash, wait?.signal),
    recordWithdrawalAttempt: async (withdrawalId, failure, wait) =>
      recordWithdrawalAttempt(context.ledger, withdrawalId, failure, wait?.signal),
    recordWithdrawalFailed: async (withdrawalId, failure, l1Time, wait) =>
      recordWithdrawalFailed(context.ledger, withdrawalId, failure, l1Time, wait?.signal),
    pendingWithdrawals: () => pendingWithdrawals(context.ledger),
  };
}
