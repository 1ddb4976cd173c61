/** Runs a command's work: what it throws is one line on the error output and exit code 1. */
export async function runCommand(work: () => Promise<void>): Promise<void> {
  try {
    await work();
  } catch (error) {
    process.stderr.write(`${messageOf(error)}\n`);
    process.exitCode = 1;
  }
}

/** Progress for people: one line that is written over, and nothing when nobody looks. */
export function progressLine(): { readonly show: (text: string) => void; readonly end: () => void } {
  const { stderr } = process;
  if (!stderr.isTTY) return { show: () => {}, end: () => {} };
  return { show: (text) => stderr.write(`\r\x1b[K${text}`), end: () => stderr.write("\r\x1b[K") };
}

/** The sentence of whatever was thrown; nothing of its causes, which may hold an RPC's address with its key. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
