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

/** Ctrl-C, or SIGTERM. However deep the work was, the command says this one word. */
export class Interrupted extends Error {
  override readonly name = "Interrupted";
  readonly code = "interrupted";
  constructor() {
    super("interrupted");
  }
}

/** Answers `--help` and exits, before anything starts. */
export function answerHelp(text: string): void {
  if (!process.argv.includes("--help")) return;
  process.stdout.write(text);
  process.exit(0);
}
