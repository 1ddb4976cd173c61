import createFetchClient, { type Client, type Middleware } from "openapi-fetch";
import type { MintReply, MintRequest, Paths } from "./api.ts";
import { answer } from "./problem.ts";
import { type RetryOptions, retryingFetch } from "./retry.ts";

/** Where the API is, and who calls. */
export interface ClientOptions extends RetryOptions {
  /** Where the API listens, such as `https://mint.example`. */
  readonly baseUrl: string;
  /** `mm_test_…` or `mm_live_…`. */
  readonly apiKey?: string;
  /** A bearer token instead, or a function that gives a fresh one. */
  readonly accessToken?: string | (() => string | Promise<string>);
}

/** Every route of the API, typed. `GET`, `POST`, `PUT` and `DELETE` resolve with `data`, or the problem as `error`. */
export type MintmarkClient = Client<Paths>;

/** Every POST of an application takes an Idempotency-Key; owners' and public routes do not. */
export function takesIdempotencyKey(method: string, path: string): boolean {
  return method === "POST" && path.startsWith("/api/");
}

/**
 * A client of the HTTP API. Credentials are sent with every request; routes that take an Idempotency-Key get a fresh
 * one unless the caller gives one, and repetitions (see `retryingFetch`) carry the same. Amounts are decimal strings.
 * Every call takes an AbortSignal as `signal`.
 *
 * @example
 * const client = createClient({ baseUrl: "http://127.0.0.1:3000", apiKey });
 * const { data, error } = await client.GET("/api/v1/assets", { params: { query: { assetType: ["erc721"] } } });
 * if (error?.code === "rate_limited") …
 */
export function createClient(options: ClientOptions): MintmarkClient {
  const { baseUrl, apiKey, accessToken } = options;
  const client = createFetchClient<Paths>({ baseUrl, fetch: retryingFetch(options) });
  const credentials: Middleware = {
    async onRequest({ request }) {
      if (apiKey !== undefined) request.headers.set("x-api-key", apiKey);
      const token = typeof accessToken === "function" ? await accessToken() : accessToken;
      if (token !== undefined) request.headers.set("authorization", `Bearer ${token}`);
      return request;
    },
  };
  const idempotency: Middleware = {
    onRequest({ request, schemaPath }) {
      if (takesIdempotencyKey(request.method, schemaPath) && !request.headers.has("idempotency-key")) {
        request.headers.set("idempotency-key", crypto.randomUUID());
      }
      return request;
    },
  };
  client.use(credentials, idempotency);
  return client;
}

/** How a mint is made safe to repeat, and given up. */
export interface MintCallOptions {
  /** Default: a random one. A key that outlives the process, such as an order's number, is safe against crashes too. */
  readonly idempotencyKey?: string;
  readonly signal?: AbortSignal;
}

/**
 * Mints all of the request or nothing; resolves once it is durable, rejects with `ApiError`.
 *
 * @example
 * const { vaults } = await mint(client, { users: [{ userId, mints }] }, { idempotencyKey: "order-17" });
 */
export async function mint(
  client: MintmarkClient,
  body: MintRequest,
  { idempotencyKey, signal }: MintCallOptions = {},
): Promise<MintReply> {
  const params = { header: idempotencyKey === undefined ? {} : { "Idempotency-Key": idempotencyKey } };
  const reply = await answer(client.POST("/api/v1/mint", { body, params, ...(signal && { signal }) }));
  if ("dryRun" in reply) throw new TypeError("the server answered a mint as if it had been asked only to check it");
  return reply;
}
