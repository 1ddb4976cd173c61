import type { Holdings } from "../holding-types.ts";
import { listOf } from "../ledger/list.ts";
import { requestWithdrawal } from "../progress/withdrawal-request.ts";
import { listBalances } from "../vaults/balances.ts";
import { findVault, listVaults } from "../vaults/holdings.ts";
import { listTransactions, listWithdrawals, readTransaction } from "../vaults/transactions.ts";
import { readWithdrawal } from "../vaults/withdrawals.ts";
import type { EngineContext } from "./context.ts";
import { requireScope } from "./requirements.ts";

export function holdings(context: EngineContext): Holdings {
  return {
    transaction: async (applicationId, transactionId) => readTransaction(context.ledger, applicationId, transactionId),
    transactions: (applicationId, filter = {}) =>
      listOf(filter, async (at) => listTransactions(context.ledger, context.cursors, applicationId, at)),
    vault: async (applicationId, vaultId) => findVault(context.ledger, applicationId, vaultId),
    vaults: (applicationId, filter = {}) =>
      listOf(filter, async (at) => listVaults(context.ledger, context.cursors, applicationId, at)),
    balances: (applicationId, userId, page = {}) =>
      listOf(page, async (at) => listBalances(context.ledger, context.cursors, applicationId, userId, at)),
    async requestWithdrawal(principal, request, wait) {
      requireScope(principal, "withdraw");
      return requestWithdrawal(context.ledger, principal, request, wait?.signal);
    },
    withdrawal: async (applicationId, withdrawalId) => readWithdrawal(context.ledger, applicationId, withdrawalId),
    withdrawals: (applicationId, filter = {}) =>
      listOf(filter, async (at) => listWithdrawals(context.ledger, context.cursors, applicationId, at)),
  };
}
