import createFetchClient, { type Client } from "openapi-fetch";
import type { MintReply, MintRequest, Paths } from "./api.ts";
import { answer } from "./problem.ts";
import { type RetryOptions, retryingFetch } from "./retry.ts";

/** Address and credentials. */
export interface ClientOptions extends RetryOptions {
  /** The API's address, such as `https://mint.example`. */
  readonly baseUrl: string;
  /** `mm_test_…` or `mm_live_…`. */
  readonly apiKey?: string;
  /** A bearer token, or a function that returns a fresh one. */
  readonly accessToken?: string | (() => string | Promise<string>);
}

/**
 * Every route of the API, typed. `GET`, `POST`, `PUT` and `DELETE` resolve with `data`, or the
 * problem as `error`.
 */
export type MintmarkClient = Client<Paths>;

/** Every POST of an application accepts an Idempotency-Key; owners' and public routes do not. */
export function takesIdempotencyKey(method: string, path: string): boolean {
  return method === "POST" && path.startsWith("/api/");
}

/**
 * A client of the HTTP API. Sends credentials with every request. Routes with an Idempotency-Key
 * get a new one unless the caller gives one; retries (see `retryingFetch`) keep it. Amounts are
 * decimal strings. Every call accepts an AbortSignal as `signal`.
 *
 * @example
 * const client = createClient({ baseUrl: "http://127.0.0.1:3000", apiKey }); const { data, error }
 * = await client.GET("/api/v1/assets", { params: { query: { assetType: ["erc721"] } } }); if
 * (error?.code === "rate_limited") console.log(error.detail);
 */
export function createClient(options: ClientOptions): MintmarkClient {
  const { baseUrl, apiKey, accessToken } = options;
  const client = createFetchClient<Paths>({ baseUrl, fetch: retryingFetch(options) });
  client.use({
    async onRequest({ request, schemaPath }) {
      if (apiKey !== undefined) request.headers.set("x-api-key", apiKey);
      const token = typeof accessToken === "function" ? await accessToken() : accessToken;
      if (token !== undefined) request.headers.set("authorization", `Bearer ${token}`);
      if (
        takesIdempotencyKey(request.method, schemaPath) &&
        !request.headers.has("idempotency-key")
      ) {
        request.headers.set("idempotency-key", crypto.randomUUID());
      }
      return request;
    },
  });
  return client;
}

/** How a mint can be repeated and cancelled. */
export interface MintCallOptions {
  /**
   * Default: a random one. A key that outlives the process, such as an order number, also covers
   * crashes.
   */
  readonly idempotencyKey?: string;
  readonly signal?: AbortSignal;
}

/**
 * Mints everything in the request or nothing. Resolves once durable; rejects with `ApiError`.
 *
 * @example
 * const { vaults } = await mint(client, { users: [{ userId, mints }] }, { idempotencyKey:
 * "order-17" });
 */
export async function mint(
  client: MintmarkClient,
  body: MintRequest,
  { idempotencyKey, signal }: MintCallOptions = {},
): Promise<MintReply> {
  const params = {
    header: idempotencyKey === undefined ? {} : { "Idempotency-Key": idempotencyKey },
  };
  const reply = await answer(
    client.POST("/api/v1/mint", { body, params, ...(signal && { signal }) }),
  );
  if ("dryRun" in reply) throw new TypeError("the server answered a mint as a dry run");
  return reply;
}
