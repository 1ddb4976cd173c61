/** Parts of the core for this package's own server and commands. Not an entry point of the package. */
export { type Backoff, backoffDelay, pause, type RepeatOptions, repeat, retryAfterMs } from "./backoff.ts";
export { Issues, type RequestLimits, readMintRequest } from "./columns/request.ts";
export { tipOwnerOf } from "./protocol/transfer-proof.ts";
export { contractTag } from "./tenants/api-keys.ts";
export { CHECKSUM_WRONG, checksumHolds, readSpelling, readUuid } from "./validate.ts";
