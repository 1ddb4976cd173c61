import { inspect } from "node:util";
import { type ErrorCode, MintmarkError } from "../../core/index.ts";
import { KeystoreError } from "./account.ts";
import { ConfigError } from "./settings/config.ts";

const LOOK_AT: Partial<Record<ErrorCode, string>> = {
  l1_failed: "MINTMARK_RPC_URL, MINTMARK_CHAIN_ID and MINTMARK_CONTRACT must be of one chain",
  store_missing: "check MINTMARK_STORE",
  store_locked: "check MINTMARK_STORE, or stop the other process",
};

const BELONGS =
  "a store belongs permanently to one environment, chain and contract: check MINTMARK_STORE, and MINTMARK_ENVIRONMENT, MINTMARK_CHAIN_ID, MINTMARK_CONTRACT";

/** The reason why a server did not start, with the settings to check. May still contain secrets. */
export function startupError(error: unknown): string {
  if (error instanceof ConfigError || error instanceof KeystoreError) return error.message;
  if (error instanceof MintmarkError) {
    const isOfSettings = error.code === "store_mismatch" && error.issues.length > 0;
    const look = isOfSettings ? BELONGS : LOOK_AT[error.code];
    return look === undefined ? error.message : `${error.message}\n${look}`;
  }
  return listenFailure(error) ?? inspect(error);
}

/** Why a process cannot listen; null for another error. */
export function listenFailure(error: unknown): string | null {
  const { syscall, code, message, ...place } = error as NodeJS.ErrnoException & { address?: string; port?: number };
  if (syscall !== "listen") return null;
  if (code !== "EADDRINUSE") return `MINTMARK_HOST, MINTMARK_PORT: ${message}`;
  return `another process listens on ${place.address}:${place.port}: stop it, or choose another MINTMARK_PORT`;
}
