import { adopt } from "../progress/adopt.ts";
import { recordSubmitted } from "../progress/batch-progress.ts";
import { compareState } from "../progress/divergence.ts";
import { recordFinalized, recordReorg } from "../progress/finality.ts";
import { recordCommitted, recordEvents, recordWithdrawn } from "../progress/l1-events.ts";
import { pendingWithdrawals } from "../progress/pending-withdrawals.ts";
import { addMirror, portalOf, portals } from "../progress/portals.ts";
import { recordWithdrawalAttempt, recordWithdrawalFailed, recordWithdrawalSubmitted } from "../progress/withdrawals.ts";
import type { SettlementRecord } from "../settlement-types.ts";
import type { EngineContext } from "./context.ts";
import { requireMode } from "./requirements.ts";

export function settlementRecord(context: EngineContext): SettlementRecord {
  return {
    addMirror: async (mirror, wait) => addMirror(context.ledger, mirror, wait?.signal),
    portals: () => portals(context.ledger),
    portal: (chainId) => portalOf(context.ledger, chainId),
    recordSubmitted: async (mode, batchNumber, txHash, wait) =>
      recordSubmitted(context.ledger, requireMode(mode), batchNumber, txHash, wait?.signal),
    recordEvents: async (chainId, events, toBlock, wait) =>
      recordEvents(context.ledger, chainId, events, toBlock, wait?.signal),
    recordCommitted: async (event, wait) => recordCommitted(context.ledger, event, wait?.signal),
    recordWithdrawn: async (chainId, event, wait) => recordWithdrawn(context.ledger, chainId, event, wait?.signal),
    recordFinalized: async (chainId, blockNumber, wait) =>
      recordFinalized(context.ledger, chainId, blockNumber, wait?.signal),
    recordReorg: async (chainId, blockNumber, wait) =>
      recordReorg(context.ledger, chainId, blockNumber, "above final", wait?.signal),
    recordDeepReorg: async (chainId, blockNumber, wait) =>
      recordReorg(context.ledger, chainId, blockNumber, "below final", wait?.signal),
    divergence: () => context.ledger.divergence,
    awaitComparison: () => {
      context.ledger.awaitsComparison = true;
    },
    requirePromising: () => context.ledger.requirePromising(),
    adoptHistory: async (adopted, wait) => adopt(context.ledger, adopted, wait?.signal),
    compareState: async (state, wait) => compareState(context.ledger, state, wait?.signal),
    recordWithdrawalSubmitted: async (withdrawalId, txHash, wait) =>
      recordWithdrawalSubmitted(context.ledger, withdrawalId, txHash, wait?.signal),
    recordWithdrawalAttempt: async (withdrawalId, failure, wait) =>
      recordWithdrawalAttempt(context.ledger, withdrawalId, failure, wait?.signal),
    recordWithdrawalFailed: async (withdrawalId, failure, l1Time, wait) =>
      recordWithdrawalFailed(context.ledger, withdrawalId, failure, l1Time, wait?.signal),
    pendingWithdrawals: (chainId, options) => pendingWithdrawals(context.ledger, chainId, options),
  };
}
