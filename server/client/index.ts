/** A typed client of the HTTP API: runs in Node and in browsers, and needs nothing of the engine. */
export type * from "./api.ts";
export { type ClientOptions, createClient, type MintCallOptions, type MintmarkClient, mint } from "./client.ts";
export { ApiError, answer, everyEntry } from "./problem.ts";
export type { RetryOptions } from "./retry.ts";
