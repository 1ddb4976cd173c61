/**
 * Parts of the core for settings, help and error messages. They load no engine and no viem, so a
 * command answers `--help` at once. Not an entry point of the package.
 */
export { ERROR_CODES, type ErrorCode, type Issue, MAX_ISSUES, MintmarkError } from "./errors.ts";
export { DEFAULT_LIMITS } from "./ledger/options.ts";
export { type Hex, MAX_AMOUNT, MAX_REFERENCE, MODES, SERIES, STANDARDS } from "./model.ts";
export { MAX_MEMBERS } from "./protocol/attestation.ts";
export { isVisible, NOT_HIDDEN } from "./protocol/text.ts";
export { ROLLUP_DATA } from "./settlement/rollup-data.ts";
export { CHECKSUM_WRONG, checksumHolds, readSpelling } from "./validate.ts";
