import { setTimeout as sleep } from "node:timers/promises";
import { MintmarkError } from "../../core/index.ts";
import { type Backoff, backoffDelay, pause } from "../../core/internal.ts";
import { isUnreachable } from "../../core/l1/index.ts";

/** The server listens this many milliseconds after connecting to L1, with or without an answer. */
const PATIENCE_MS = 3_000;
const REACH: Backoff = { firstMs: 1_000, maxMs: 30_000 };
export const UNREACHED =
  "L1 does not answer (MINTMARK_RPC_URL); the server accepts no mints, and tries again";
const AWAY =
  "the cluster's journal does not answer, so the server does not follow L1 yet; it tries again";

/**
 * The answer of L1 if it comes soon; else undefined. Rejects for faults that waiting cannot fix.
 */
export async function soon<T>(answer: Promise<T>): Promise<T | undefined> {
  const reached = answer.catch((error: unknown) => {
    if (!isUnreachable(error)) throw error;
    return undefined;
  });
  // The next request reports a late failure.
  reached.catch(() => {});
  return Promise.race([reached, sleep(PATIENCE_MS, undefined, { ref: false })]);
}

/**
 * Tries until L1 answers, and a cluster's journal too: comparing with L1 takes its turn among the
 * changes. A node that is down comes back; a wrong setting does not, so it throws.
 */
export async function reach(
  start: () => Promise<void>,
  signal: AbortSignal,
  onUnreached: (error: unknown, message: string) => void,
): Promise<void> {
  for (let attempt = 1; !signal.aborted; attempt++) {
    try {
      return await start();
    } catch (error) {
      if (signal.aborted) return;
      const isAway = error instanceof MintmarkError && error.code === "journal_unavailable";
      if (!isAway && !isUnreachable(error)) throw error;
      onUnreached(error, isAway ? AWAY : UNREACHED);
      // A database that fails over is back in seconds, and mints wait for it.
      await pause(backoffDelay(REACH, isAway ? 1 : attempt), signal).catch(() => {});
    }
  }
}
