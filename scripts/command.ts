import { BaseError } from "viem";
import { reasonOf } from "../core/l1/failure.ts";

/** Runs a command's work: what it throws is one line on the error output and exit code 1. */
export async function runCommand(work: () => Promise<void>): Promise<void> {
  try {
    await work();
  } catch (error) {
    process.stderr.write(`${messageOf(error)}\n`);
    process.exitCode = 1;
  }
}

/** Answers `--help` and ends, before anything starts. */
export function answerHelp(text: string): void {
  if (!process.argv.includes("--help")) return;
  process.stdout.write(text);
  process.exit(0);
}

/** Progress for people: one line that is written over, and nothing when nobody looks. */
export function progressLine(): { readonly show: (text: string) => void; readonly end: () => void } {
  const { stderr } = process;
  if (!stderr.isTTY) return { show: () => {}, end: () => {} };
  return { show: (text) => stderr.write(`\r\x1b[K${text}`), end: () => stderr.write("\r\x1b[K") };
}

/** The sentence of whatever was thrown; nothing of its causes, which may hold an RPC's address with its key. */
export function messageOf(error: unknown): string {
  if (error instanceof BaseError) return reasonOf(error);
  return error instanceof Error ? error.message : String(error);
}
