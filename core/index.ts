/** The public surface of the core: what an embedding application, the server and the scripts import. */

export { type Backoff, backoffDelay, pause, type RepeatOptions, repeat, retryAfterMs } from "./backoff.ts";
export * from "./contract-tag.ts";
export * from "./engine.ts";
export * from "./errors.ts";
export * from "./model.ts";
export { type RestoreOptions, restoreStore } from "./opening/restore.ts";
export type * from "./ports.ts";
export type { MintReceipt, ReceiptSigner, VaultReceipt } from "./protocol/receipt.ts";
export { LevelJournal } from "./store/level-journal.ts";
export type * from "./store-ports.ts";
