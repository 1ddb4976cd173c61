/** A typed client of the HTTP API for Node and browsers. It needs nothing of the engine. */
export type * from "./api.ts";
export {
  type ClientOptions,
  createClient,
  type MintCallOptions,
  type MintmarkClient,
  mint,
} from "./client.ts";
export { ApiError, answer, everyEntry } from "./problem.ts";
export type { RetryOptions } from "./retry.ts";
export type { Eip1193Provider, OwnerSigner, TypedData, TypedDataSigner } from "./sign.ts";
export { type BuyOptions, buy, type SellOptions, sell } from "./trade.ts";
export { type TransferOptions, transfer, type VaultTransfer } from "./transfer.ts";
export { type DeliveryHeaders, webhookEvent } from "./webhook.ts";
export { type VaultWithdrawal, type WithdrawOptions, withdraw } from "./withdraw.ts";
