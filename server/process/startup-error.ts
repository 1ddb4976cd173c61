import { inspect } from "node:util";
import { type ErrorCode, MintmarkError } from "../../core/index.ts";
import { ConfigError } from "../settings/config.ts";
import { KeystoreError } from "./account.ts";

/** Settings to check, by error. */
const LOOK_AT: Partial<Record<ErrorCode, string>> = {
  l1_failed: "MINTMARK_RPC_URL, MINTMARK_CHAIN_ID and MINTMARK_CONTRACT must be of one chain",
  store_mismatch:
    "a store belongs permanently to one environment, chain and contract, and to one mirror per chain: check MINTMARK_STORE, and MINTMARK_ENVIRONMENT, MINTMARK_CHAIN_ID, MINTMARK_CONTRACT, MINTMARK_MIRRORS",
  store_missing: "check MINTMARK_STORE",
  store_locked: "check MINTMARK_STORE, or stop the other process",
};

/** The reason why a server did not start, with the settings to check. May still contain secrets. */
export function startupError(error: unknown): string {
  if (error instanceof ConfigError || error instanceof KeystoreError) return error.message;
  if (error instanceof MintmarkError) {
    const look = LOOK_AT[error.code];
    return look === undefined ? error.message : `${error.message}\n${look}`;
  }
  const { syscall, message } = error as NodeJS.ErrnoException;
  return syscall === "listen" ? `MINTMARK_HOST, MINTMARK_PORT: ${message}` : inspect(error);
}
