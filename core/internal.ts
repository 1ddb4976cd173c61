/** What this package's own server and commands need of the core, and other packages do not: it is no entry point. */
export { type Backoff, backoffDelay, pause, type RepeatOptions, repeat, retryAfterMs } from "./backoff.ts";
export { contractTag } from "./tenants/api-keys.ts";
export { CHECKSUM_WRONG, checksumHolds, readSpelling } from "./validate.ts";
