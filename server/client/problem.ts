import { pause } from "../../core/backoff.ts";
import type { Problem } from "./api.ts";

/**
 * An error response of the API: `code` is stable, `problem` the whole RFC 9457 document with every
 * bad entry.
 *
 * @example
 * if (error instanceof ApiError && error.code === "token_already_minted") skip();
 */
export class ApiError extends Error {
  override readonly name = "ApiError";
  readonly status: number;
  readonly code: string;
  readonly problem: Problem;

  constructor(problem: Problem) {
    const entries = problem.errors.map(
      ({ pointer, code, detail }) => `\n  ${pointer}: ${code}: ${detail}`,
    );
    super(`${problem.status} ${problem.code}: ${problem.detail}${entries.join("")}`);
    this.status = problem.status;
    this.code = problem.code;
    this.problem = problem;
  }
}

/** The result of a client's call: the response, or its problem. */
interface Result<T> {
  readonly data?: T;
  readonly error?: unknown;
  readonly response: Response;
}

/**
 * The response of a call. Rejects with `ApiError` for an error of the API, else with an `Error`.
 *
 * @example
 * const user = await answer(client.GET("/api/v1/users/{userId}", { params: { path: { userId } }
 * }));
 */
export async function answer<T>(call: Promise<Result<T>>): Promise<Exclude<T, undefined>> {
  const { data, error, response } = await call;
  if (data !== undefined) return data as Exclude<T, undefined>;
  if (isProblem(error)) throw new ApiError(error);
  throw new Error(
    `${response.url} answered ${response.status}, but not like this API; is the address right?`,
  );
}

/** How a call waits for L1. */
export interface Waiting {
  readonly wait?: boolean;
  /** Milliseconds between two polls. Default 2,000. */
  readonly pollingMs?: number;
  readonly signal?: AbortSignal;
}

/**
 * Resolves with the answer of `ask`. With `wait`, it asks again while a batch is not final on L1
 * (`proof_not_ready`).
 */
export async function answerWhenFinal<T>(
  ask: () => Promise<Result<T>>,
  { wait, pollingMs = 2_000, signal }: Waiting,
): Promise<Exclude<T, undefined>> {
  for (;;) {
    try {
      return await answer(ask());
    } catch (error) {
      if (!wait || !(error instanceof ApiError) || error.code !== "proof_not_ready") throw error;
      await pause(pollingMs, signal);
    }
  }
}

/**
 * Every entry of a list, page after page. `page` requests one page; the first cursor is undefined.
 *
 * @example
 * const users = (cursor?: string) =>
 *   client.GET("/api/v1/users", { params: { query: { limit: 100, ...(cursor && { cursor }) } } });
 * for await (const { userId } of everyEntry(users)) console.log(userId);
 */
export async function* everyEntry<T>(
  page: (
    cursor: string | undefined,
  ) => Promise<Result<{ data: T[]; pagination: { nextCursor: string | null } }>>,
): AsyncGenerator<T, void, undefined> {
  let cursor: string | undefined;
  do {
    const { data, pagination } = await answer(page(cursor));
    yield* data;
    cursor = pagination.nextCursor ?? undefined;
  } while (cursor !== undefined);
}

function isProblem(value: unknown): value is Problem {
  return (
    typeof value === "object" &&
    value !== null &&
    "code" in value &&
    "requestId" in value &&
    "errors" in value
  );
}
