import { inspect } from "node:util";
import { type ErrorCode, MintmarkError } from "../../core/index.ts";
import { ConfigError } from "../settings/config.ts";

/** Settings that decide whether a store and a chain are the right ones. */
const LOOK_AT: Partial<Record<ErrorCode, string>> = {
  l1_failed: "MINTMARK_RPC_URL, MINTMARK_CHAIN_ID and MINTMARK_CONTRACT must be of one chain",
  store_mismatch:
    "a store is of one environment, chain and contract, and one mirror a chain, for ever: look at MINTMARK_STORE, and at MINTMARK_ENVIRONMENT, MINTMARK_CHAIN_ID, MINTMARK_CONTRACT, MINTMARK_MIRRORS",
  store_missing: "look at MINTMARK_STORE",
  store_locked: "look at MINTMARK_STORE, or stop the other process",
};

/** Why a server did not start: one sentence where one says it all, with the settings to look at. Not yet without secrets. */
export function startupError(error: unknown): string {
  if (error instanceof ConfigError) return error.message;
  if (error instanceof MintmarkError) {
    const look = LOOK_AT[error.code];
    return look === undefined ? error.message : `${error.message}\n${look}`;
  }
  const { syscall, message } = error as NodeJS.ErrnoException;
  return syscall === "listen" ? `MINTMARK_HOST, MINTMARK_PORT: ${message}` : inspect(error);
}
