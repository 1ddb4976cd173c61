import { backoffDelay, pause, retryAfterMs } from "../../core/backoff.ts";

/** Limits of retries. */
export interface RetryOptions {
  /** Most retries of one request; default 4. */
  readonly retries?: number;
  /**
   * Longest wait before a retry, in milliseconds; a response that asks for more is returned.
   * Default 30,000.
   */
  readonly maxWaitMs?: number;
  /** Default: the platform's. */
  readonly fetch?: typeof globalThis.fetch;
}

const BACKOFF = { firstMs: 200, maxMs: 10_000 };
/** Faults of a server that do not pass by themselves. */
const LASTING: ReadonlySet<unknown> = new Set([
  ...["drops_unavailable", "history_diverged", "kzg_unavailable"],
  ...["store_locked", "store_mismatch", "store_missing"],
]);
const REPEATABLE = new Set(["GET", "HEAD", "PUT", "DELETE"]);

/**
 * A `fetch` with retries: 429 after Retry-After; broken connections, and a 503 that can pass, after
 * Retry-After or a growing pause. The latter only if a repetition changes nothing: reads, PUT,
 * DELETE, and requests with an Idempotency-Key, whose first attempt may still be in progress (409
 * `idempotency_in_progress`). The request's signal ends the wait too.
 */
export function retryingFetch(options: RetryOptions = {}): (request: Request) => Promise<Response> {
  const { retries = 4, maxWaitMs = 30_000, fetch = globalThis.fetch } = options;
  return async (request) => {
    for (let attempt = 1; ; attempt++) {
      const outcome = await fetch(attempt > retries ? request : request.clone()).catch(
        (error: unknown) => {
          if (request.signal.aborted || attempt > retries || !repeatable(request)) throw error;
          return undefined;
        },
      );
      if (outcome !== undefined && (attempt > retries || !(await refusedForNow(outcome, request))))
        return outcome;
      const wait =
        retryAfterMs(outcome?.headers.get("retry-after")) ?? backoffDelay(BACKOFF, attempt);
      if (outcome !== undefined && wait > maxWaitMs) return outcome;
      await outcome?.body?.cancel();
      await pause(wait, request.signal);
    }
  };
}

/** Whether the same request can be answered later. */
export async function refusedForNow(response: Response, request: Request): Promise<boolean> {
  // Readiness answers 503 as a result.
  if (new URL(request.url).pathname.endsWith("/readyz")) return false;
  if (response.status === 429) return true;
  if (!repeatable(request)) return false;
  if (response.status === 503) return !LASTING.has(await codeOf(response));
  return response.status === 409 && (await codeOf(response)) === "idempotency_in_progress";
}

/** The code of a problem document; undefined for other responses. */
export async function codeOf(response: Response): Promise<unknown> {
  const problem: unknown = await response
    .clone()
    .json()
    .catch(() => null);
  return (problem as { code?: unknown } | null)?.code;
}

function repeatable({ method, headers }: Request): boolean {
  return REPEATABLE.has(method) || headers.has("idempotency-key");
}
