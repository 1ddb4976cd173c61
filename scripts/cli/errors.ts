import { BaseError } from "viem";
import { MintmarkError } from "../../core/index.ts";
import { reasonOf } from "../../core/l1/connection.ts";
import { ConfigError, listenFailure } from "../../server/process/settings/config.ts";

/** The exit codes of the process; `mintmark --help` lists them. */
export const EXIT = { ok: 0, refused: 1, usage: 2, unreachable: 3, interrupted: 130 } as const;

export const EXIT_HELP = `Exit codes:
  0    done
  1    refused, or a check found something wrong
  2    wrong arguments or settings
  3    the store, the server or L1 could not be reached; try again later
  130  interrupted`;

/** A mistake of the caller in arguments or settings. The message says what to give. */
export class UsageError extends Error {
  override readonly name = "UsageError";
  readonly code = "validation_failed";
}

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
  if (error instanceof BaseError) return reasonOf(error);
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

/** Answers `--help` and exits, before anything starts. */
export function answerHelp(text: string): void {
  if (!process.argv.includes("--help")) return;
  process.stdout.write(text);
  process.exit(0);
}
