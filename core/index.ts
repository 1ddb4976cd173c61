/** The public interface of the core, for embedding applications, the server and the scripts. */

export type { WaitOptions } from "./abort.ts";
export type { Adopted } from "./adoption/adopted-batches.ts";
export type { AdoptedBatches } from "./adoption/incoming.ts";
export type { Batches, BatchFilter } from "./batches/batches.ts";
export type {
  BatchMultiproof,
  BatchTransition,
  ProofOptions,
  StateExtension,
} from "./batches/proofs.ts";
export type { Claim, Claims, FoundClaim, NewClaim, TakenClaim } from "./claims/claims.ts";
export { MAX_NEW_CLAIMS } from "./claims/claims.ts";
export type { DepositFilter, Deposits } from "./deposits/deposits.ts";
export { type DropJob, Drops, type DropsOptions, type DropUpload } from "./drops/drops.ts";
export { type Engine, openEngine } from "./engine.ts";
export { ERROR_CODES, type ErrorCode, type Issue, MAX_ISSUES, MintmarkError } from "./errors.ts";
export type { EventOptions, Events } from "./events/event-log.ts";
export type { EngineEvents } from "./ledger/event-hub.ts";
export type { List, OrderedPage, PageOptions } from "./ledger/list.ts";
export { DEFAULT_LIMITS, type EngineOptions } from "./ledger/options.ts";
export type { AcceptedColumns, MintResult, MintTransaction } from "./mint/mint-results.ts";
export type {
  MintCounts,
  MintEntry,
  MintOptions,
  MintRecipient,
  MintRequest,
  MintRequestOr,
  Mints,
} from "./mint/mints.ts";
export * from "./model.ts";
export type { Operator, SettlementPort } from "./operator.ts";
export type * from "./ports.ts";
export type { VaultRefusal } from "./progress/batch-progress.ts";
export type { Proofs } from "./progress/exit-proofs.ts";
export type { FollowedPortal } from "./progress/portals.ts";
export { type Kzg, KzgThread, type ProofForm } from "./protocol/kzg/kzg-thread.ts";
export type { BatchVaultProof, EngineState, VaultStateProof } from "./protocol/proof.ts";
export type { MintReceipt, ReceiptSigner, VaultReceipt } from "./protocol/receipt.ts";
export type { VoidSlots } from "./sealing/void-runs.ts";
export type { Copied, CopyOptions } from "./store/backup.ts";
export { LevelJournal } from "./store/level-store.ts";
export type * from "./store/ports.ts";
export { type IssuedKey, type Keys, type NewKey, RIGHTS, type Right } from "./tenants/api-keys.ts";
export type { Applications, NewApplication } from "./tenants/applications.ts";
export type {
  AssetChanges,
  AssetFilter,
  Assets,
  NewAsset,
  RegisteredFacts,
} from "./tenants/assets.ts";
export type {
  Collection,
  CollectionChanges,
  JsonObject,
  Metadata,
  NewMetadata,
  ServedMetadata,
  TokenMetadata,
} from "./tenants/metadata.ts";
export { MAX_METADATA_TOKENS } from "./tenants/metadata.ts";
export type { AuditEntry, Invitation, NewPerson, People } from "./tenants/people.ts";
export type { NewSignIn, Person, SignIn, WalletProof } from "./tenants/sign-ins.ts";
export { MAX_NEW_USERS, type NewUser, type UserFilter, type Users } from "./tenants/users.ts";
export type { TransferRequest } from "./transfers/request.ts";
export type {
  KeySession,
  PreparedTransfers,
  TransferPreparation,
  Transfers,
} from "./transfers/transfers.ts";
export type {
  HistoryStep,
  TransferFilter,
  TransferList,
  TransferredVault,
  VaultHistory,
} from "./transfers/views.ts";
export type { Balance } from "./vaults/balances.ts";
export type { Vaults } from "./vaults/holdings.ts";
export { type OwnedVault, STANDINGS, type Standing } from "./vaults/owned.ts";
export type { SignedOptions, VaultCaller } from "./vaults/signed-requests.ts";
export type { TransactionFilter, VaultFilter } from "./vaults/transaction-range.ts";
export type { ScanOptions } from "./vaults/transaction-scan.ts";
export type { Transactions, WithdrawalFilter } from "./vaults/transactions.ts";
export type { KeyUsage, Usage, UsageOptions, UsagePeriod } from "./vaults/usage.ts";
export { type RestoreOptions, restoreStore } from "./verify/restore.ts";
export type { VerifyOptions, VerifyReport } from "./verify/verify.ts";
export {
  type Attempt,
  type DispatcherOptions,
  WebhookDispatcher,
} from "./webhooks/dispatcher.ts";
export type {
  Deliveries,
  IssuedWebhook,
  NewWebhook,
  SkipOptions,
  Webhook,
  Webhooks,
} from "./webhooks/webhooks.ts";
export type { PendingOptions, PendingWithdrawal } from "./withdrawals/pending.ts";
export type {
  ListedWithdrawal,
  WithdrawalListRequest,
} from "./withdrawals/requests.ts";
export type {
  PreparedWithdrawals,
  WithdrawalPreparation,
  Withdrawals,
} from "./withdrawals/withdrawals.ts";
