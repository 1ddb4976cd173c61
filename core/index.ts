/** The public interface of the core, for embedding applications, the server and the scripts. */

export type { WaitOptions } from "./abort.ts";
export type { Adopted } from "./batches/adopt.ts";
export type { Batches, BatchFilter } from "./batches/batches.ts";
export type { AdoptedBatches } from "./batches/incoming.ts";
export type { BatchMultiproof, BatchTransition, ProofOptions, StateExtension } from "./batches/proofs.ts";
export {
  type Claim,
  type Claims,
  type FoundClaim,
  MAX_NEW_CLAIMS,
  type NewClaim,
  type TakenClaim,
} from "./claims/claims.ts";
export { type Engine, openEngine } from "./engine.ts";
export * from "./errors.ts";
export type { EventOptions, Events } from "./events/event-log.ts";
export type { Deliveries, IssuedWebhook, NewWebhook, Webhook, Webhooks } from "./events/webhooks.ts";
export { type Kzg, KzgThread, type ProofForm } from "./kzg/kzg.ts";
export type { EngineEvents } from "./ledger/event-hub.ts";
export type { List, PageOptions } from "./ledger/list.ts";
export { DEFAULT_LIMITS, type EngineOptions } from "./ledger/options.ts";
export {
  type Collection,
  type CollectionChanges,
  type JsonObject,
  MAX_METADATA_TOKENS,
  type Metadata,
  type NewMetadata,
  type ServedMetadata,
  type TokenMetadata,
} from "./metadata/metadata.ts";
export type { AcceptedColumns } from "./mint/accepted-columns.ts";
export type { MintResult, MintTransaction } from "./mint/mint-results.ts";
export type { MintOptions, Mints } from "./mint/mints.ts";
export * from "./model.ts";
export type { Operator, SettlementPort } from "./operator.ts";
export type * from "./ports.ts";
export type { PendingOptions, PendingWithdrawal } from "./progress/pending-withdrawals.ts";
export type { FollowedPortal } from "./progress/portals.ts";
export type { Proofs } from "./progress/proofs.ts";
export type { VaultRefusal } from "./progress/refusals.ts";
export type { ListedWithdrawal, WithdrawalCaller, WithdrawalListRequest } from "./progress/withdrawal-list.ts";
export type { PreparedWithdrawals, WithdrawalPreparation } from "./progress/withdrawal-preparation.ts";
export type { WithdrawalRequest, Withdrawals } from "./progress/withdrawal-request.ts";
export type { BatchVaultProof, EngineState, VaultStateProof } from "./protocol/proof.ts";
export type { MintReceipt, ReceiptSigner, VaultReceipt } from "./protocol/receipt.ts";
export type { VoidSlots } from "./sealing/void-runs.ts";
export type { Copied, CopyOptions } from "./store/journaled-store.ts";
export { LevelJournal } from "./store/level-journal.ts";
export type * from "./store/ports.ts";
export type { IssuedKey, Keys, NewKey } from "./tenants/api-keys.ts";
export type { Applications, NewApplication } from "./tenants/applications.ts";
export type { AssetChanges, AssetFilter, Assets, NewAsset, RegisteredFacts } from "./tenants/assets.ts";
export type { AuditEntry } from "./tenants/audit.ts";
export type { Invitation, NewMember, People } from "./tenants/people.ts";
export { RIGHTS, type Right } from "./tenants/roles.ts";
export type { Member, OpenedSession, Session, WalletProof } from "./tenants/sessions.ts";
export { MAX_NEW_USERS, type NewUser, type UserFilter, type Users } from "./tenants/users.ts";
export type { TransferCaller } from "./transfers/checks.ts";
export type { HistoryStep, VaultHistory } from "./transfers/history.ts";
export type { TransferFilter, TransferList, TransferredVault } from "./transfers/list.ts";
export type { PreparedTransfers, TransferPreparation } from "./transfers/prepare.ts";
export type { TransferRequest } from "./transfers/request.ts";
export type { KeySession, Transfers } from "./transfers/transfers.ts";
export type { Balance } from "./vaults/balances.ts";
export type { Vaults } from "./vaults/holdings.ts";
export type { TransactionFilter, VaultFilter } from "./vaults/transaction-range.ts";
export type { Transactions, WithdrawalFilter } from "./vaults/transactions.ts";
export type { KeyUsage, Usage, UsageOptions, UsagePeriod } from "./vaults/usage.ts";
export { type RestoreOptions, restoreStore } from "./verify/restore.ts";
export type { VerifyOptions, VerifyReport } from "./verify/verify.ts";
