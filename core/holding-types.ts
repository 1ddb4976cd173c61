import type { Balance, List, PageOptions, TransactionFilter, VaultFilter, WithdrawalFilter } from "./list-types.ts";
import type { Address, Hex, Principal, Transaction, Uuid, Vault, VaultId, Withdrawal } from "./model.ts";
import type { WaitOptions } from "./wait-types.ts";

export interface WithdrawalRequest {
  readonly vaultId: VaultId;
  readonly quantity: bigint;
  /** Default: the owner. */
  readonly recipient?: Address;
  /** Seconds since 1970, as signed. */
  readonly deadline: bigint;
  /**
   * The owner's EIP-712 `Withdrawal` message; `withdrawnBefore` is the vault's `withdrawnBalance`, the domain's contract the one that
   * `portal` names for the token's chain.
   */
  readonly signature: Hex;
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
  /** Checks the owner's signature and reserves the quantity. One withdrawal of a vault at a time. */
  requestWithdrawal(principal: Principal, request: WithdrawalRequest, wait?: WaitOptions): Promise<Withdrawal>;
  withdrawal(applicationId: Uuid, withdrawalId: Uuid): Promise<Withdrawal>;
  /** Newest first; shorter pages as with `transactions`. */
  withdrawals(applicationId: Uuid, filter?: WithdrawalFilter): List<Withdrawal>;
}
