import { MintmarkError } from "../../core/errors.ts";
import { isViems, reasonOf } from "../../core/l1/reason.ts";
import { ConfigError, listenFailure } from "../../server/process/settings/config.ts";
import { EXIT, UsageError } from "./exit.ts";

const UNREACHABLE = new Set([
  "store_locked",
  "store_failed",
  "journal_unavailable",
  "engine_closed",
  "l1_failed",
]);

function isUnanswered(error: unknown): error is TypeError {
  return error instanceof TypeError && error.message === "fetch failed";
}

export function exitCodeOf(error: unknown): number {
  if (isUnanswered(error)) return EXIT.unreachable;
  if (error instanceof UsageError || error instanceof ConfigError) return EXIT.usage;
  if (!(error instanceof MintmarkError)) return EXIT.refused;
  if (error.code === "validation_failed") return EXIT.usage;
  return UNREACHABLE.has(error.code) ? EXIT.unreachable : EXIT.refused;
}

/** The message of an error, without its causes, which may contain an RPC's address with its key. */
export function messageOf(error: unknown): string {
  if (isViems(error)) return reasonOf(error);
  // Node says only "fetch failed". The cause has the reason.
  if (isUnanswered(error))
    return `the server does not answer (${codeOf(error.cause)}): is its address right?`;
  if (codeOf(error) === "ENOENT" && error instanceof Error && "path" in error)
    return `${error.path} does not exist`;
  return error instanceof Error ? (listenFailure(error) ?? error.message) : String(error);
}

function codeOf(cause: unknown): string {
  return (cause as { readonly code?: string } | undefined)?.code ?? "no connection";
}

/** Runs a tool's work. An error becomes one line on standard error and exit code 1. */
export async function runCommand(work: () => Promise<void>): Promise<void> {
  try {
    await work();
  } catch (error) {
    process.stderr.write(`${messageOf(error)}\n`);
    process.exitCode = 1;
  }
}
