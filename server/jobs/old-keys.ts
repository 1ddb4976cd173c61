import type { Engine } from "../../core/index.ts";
import { repeat } from "../../core/internal.ts";

const HOUR_MS = 3_600_000;
/** Time between runs, by which a key may be kept longer. */
const INTERVAL_MS = 600_000;
const BACKOFF = { firstMs: 60_000, maxMs: HOUR_MS };

/** Deletes idempotency keys older than `keepHours` from time to time, until disposed. */
export function forgetOldKeys(engine: Engine, keepHours: number, onError: (error: unknown) => void): AsyncDisposable {
  const stopping = new AbortController();
  const forgetting = repeat(
    (signal) =>
      engine.operator.forgetIdempotencyKeys(
        Math.max(0, Math.floor(engine.operator.reachedTime()) - keepHours * HOUR_MS),
        { signal },
      ),
    { intervalMs: INTERVAL_MS, backoff: BACKOFF, onRound: (error) => error !== null && onError(error) },
    stopping.signal,
  );
  return {
    async [Symbol.asyncDispose]() {
      stopping.abort();
      await forgetting;
    },
  };
}
