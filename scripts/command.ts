import { messageOf } from "./cli/errors.ts";

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
