/**
 * Parts of the core for this package's own server and commands. Not an entry point of the package.
 */
export {
  type Backoff,
  backoffDelay,
  pause,
  type RepeatOptions,
  repeat,
  retryAfterMs,
} from "./backoff.ts";
export { dropId, type Minting, type Pace, RequestRefused, runDrop } from "./drops/drop.ts";
export type { Counts } from "./drops/progress.ts";
export { DROP_FORMATS, type DropFormat, sentenceOf } from "./drops/rows.ts";
export { type Survey, surveyOf } from "./drops/windows.ts";
export { type EventJson, eventJson } from "./events/event-log.ts";
export type { ContractCreation } from "./l1/chain.ts";
export { Followers } from "./ledger/followers.ts";
export { countMints, type FieldForm, MINT_FORM, USER_FORM } from "./mint/form.ts";
export { parseJson } from "./mint/json.ts";
export { type RequestLimits, requireForm } from "./mint/reader.ts";
export { assetType } from "./protocol/asset.ts";
export { decimalAmount, quantizedAmount } from "./protocol/quantized.ts";
export { isVisible, NOT_HIDDEN, visible } from "./protocol/text.ts";
export { MAX_TRANSFER_DEADLINE } from "./protocol/transfer.ts";
export { tipOwnerOf } from "./protocol/transfer-proof.ts";
export { ROLLUP_BIT } from "./protocol/vault.ts";
export { Stack } from "./stack.ts";
export { hashUuid, timeUuid } from "./store/binary.ts";
export { CHECKSUM_WRONG, checksumHolds, orNull, readSpelling, readUuid } from "./validate.ts";
export { isSignatureRefused } from "./vaults/activity.ts";
export {
  ForbiddenAddress,
  requireReachable,
  type WebhookReach,
} from "./webhooks/address-policy.ts";
