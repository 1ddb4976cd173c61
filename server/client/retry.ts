import { backoffDelay, pause, retryAfterMs } from "../../core/backoff.ts";

/** How often a request is repeated. */
export interface RetryOptions {
  /** Most repetitions of one request; default 4. */
  readonly retries?: number;
  /** Longest wait before a repetition, in milliseconds; an answer that asks for more is given back. Default 30 000. */
  readonly maxWaitMs?: number;
  /** Default: the platform's. */
  readonly fetch?: typeof globalThis.fetch;
}

const BACKOFF = { firstMs: 200, maxMs: 10_000 };
const REPEATABLE = new Set(["GET", "HEAD", "PUT", "DELETE"]);

/**
 * A `fetch` that repeats what the server did not take: 429 after Retry-After; 503 and broken connections after
 * Retry-After or a growing pause, but only where a repetition changes nothing: reads, PUT, DELETE, and whatever carries
 * an Idempotency-Key, of which the first attempt may still be under way (409 `idempotency_in_progress`). The request's
 * signal ends the waiting too.
 */
export function retryingFetch(options: RetryOptions = {}): (request: Request) => Promise<Response> {
  const { retries = 4, maxWaitMs = 30_000, fetch = globalThis.fetch } = options;
  return async (request) => {
    for (let attempt = 1; ; attempt++) {
      const outcome = await fetch(attempt > retries ? request : request.clone()).catch((error: unknown) => {
        if (request.signal.aborted || attempt > retries || !repeatable(request)) throw error;
        return undefined;
      });
      if (outcome !== undefined && (attempt > retries || !(await refusedForNow(outcome, request)))) return outcome;
      const wait = retryAfterMs(outcome?.headers.get("retry-after")) ?? backoffDelay(BACKOFF, attempt);
      if (outcome !== undefined && wait > maxWaitMs) return outcome;
      await outcome?.body?.cancel();
      await pause(wait, request.signal);
    }
  };
}

async function refusedForNow(response: Response, request: Request): Promise<boolean> {
  // To the question whether it is ready, 503 is an answer.
  if (new URL(request.url).pathname.endsWith("/readyz")) return false;
  if (response.status === 429) return true;
  if (!repeatable(request)) return false;
  return response.status === 503 || (response.status === 409 && (await codeOf(response)) === "idempotency_in_progress");
}

/** The code of a problem document; undefined when the answer is none. */
async function codeOf(response: Response): Promise<unknown> {
  const problem: unknown = await response
    .clone()
    .json()
    .catch(() => null);
  return (problem as { code?: unknown } | null)?.code;
}

function repeatable({ method, headers }: Request): boolean {
  return REPEATABLE.has(method) || headers.has("idempotency-key");
}
