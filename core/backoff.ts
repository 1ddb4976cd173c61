/**
 * Waits that double from `firstMs` to `maxMs`, each up to a quarter shorter at random, to spread
 * clients.
 */
export interface Backoff {
  readonly firstMs: number;
  readonly maxMs: number;
}

/** Milliseconds to wait before attempt `attempt`; 1 is the first retry. */
export function backoffDelay({ firstMs, maxMs }: Backoff, attempt: number): number {
  const full = Math.min(maxMs, firstMs * 2 ** Math.min(attempt - 1, 30));
  return full * (1 - Math.random() / 4);
}

/**
 * Milliseconds of a Retry-After field (RFC 9110, 10.2.3): seconds, or a date. Undefined for
 * anything else.
 */
export function retryAfterMs(field: string | null | undefined): number | undefined {
  const text = field ?? "";
  if (/^\d+$/.test(text)) return Number(text) * 1000;
  const date = Date.parse(text);
  return Number.isNaN(date) ? undefined : Math.max(0, date - Date.now());
}

/** Resolves after `ms` milliseconds; rejects with the signal's reason once aborted. */
export function pause(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason);
    const stop = () => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", stop);
      resolve();
    }, ms);
    signal?.addEventListener("abort", stop, { once: true });
  });
}

export interface RepeatOptions {
  /** Milliseconds after a successful round. */
  readonly intervalMs: number;
  /** The wait after failed rounds, if longer. */
  readonly backoff: Backoff;
  /** Called after each round with its error; null when it succeeded. */
  readonly onRound: (error: unknown) => void;
}

/** Runs rounds until the signal aborts. The delay after failed rounds grows. */
export async function repeat(
  round: (signal: AbortSignal) => Promise<unknown>,
  { intervalMs, backoff, onRound }: RepeatOptions,
  signal: AbortSignal,
): Promise<void> {
  let failures = 0;
  while (!signal.aborted) {
    try {
      await round(signal);
      failures = 0;
      onRound(null);
    } catch (error) {
      if (signal.aborted) return;
      failures++;
      onRound(error);
    }
    const wait =
      failures === 0 ? intervalMs : Math.max(intervalMs, backoffDelay(backoff, failures));
    await pause(wait, signal).catch(() => {});
  }
}
