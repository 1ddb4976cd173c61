import type { WaitOptions } from "../abort.ts";
import { type List, listOf, type PageOptions } from "../ledger/list.ts";
import type { Principal, Transaction, Uuid, Vault, VaultId, Withdrawal } from "../model.ts";
import { requestWithdrawal, type WithdrawalRequest } from "../progress/withdrawal-request.ts";
import { type Balance, listBalances } from "../vaults/balances.ts";
import { findVault, listVaults, type VaultFilter } from "../vaults/holdings.ts";
import type { TransactionFilter } from "../vaults/transaction-range.ts";
import { listTransactions, listWithdrawals, readTransaction, type WithdrawalFilter } from "../vaults/transactions.ts";
import { readWithdrawal } from "../vaults/withdrawals.ts";
import { type EngineContext, requireScope } from "./context.ts";

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

/** What was minted, for whom, and how it leaves: each application sees its own. */
export interface Holdings {
  transaction(applicationId: Uuid, transactionId: string): Promise<Transaction>;
  /** A page can be shorter than `limit` and yet have a next one: the work of one page is bounded, however rare its matches. */
  transactions(applicationId: Uuid, filter?: TransactionFilter): List<Transaction>;
  vault(applicationId: Uuid, vaultId: VaultId): Promise<Vault>;
  /** In the order in which they were made; shorter pages as with `transactions`. */
  vaults(applicationId: Uuid, filter?: VaultFilter): List<Vault>;
  /**
   * What a user holds, by token, in the order in which each was first minted: an ERC-721 token is one vault, the others are summed over
   * vaults. The first question after opening looks at every mint of the user, later ones at what was minted since, unless a withdrawal
   * of the user's or a void vault has changed the sums. Shorter pages as with `transactions`.
   */
  balances(applicationId: Uuid, userId: Uuid, page?: PageOptions): List<Balance>;
  /**
   * Checks the owner's signature and reserves the quantity. One withdrawal of a vault at a time. The same signed request
   * again resolves with the same withdrawal in its current state, also after it was paid or has failed.
   */
  requestWithdrawal(principal: Principal, request: WithdrawalRequest, wait?: WaitOptions): Promise<Withdrawal>;
  withdrawal(applicationId: Uuid, withdrawalId: Uuid): Promise<Withdrawal>;
  /** Newest first; shorter pages as with `transactions`. */
  withdrawals(applicationId: Uuid, filter?: WithdrawalFilter): List<Withdrawal>;
}
