import { z } from "zod";
import { responseComponent } from "./common.ts";

export const health = responseComponent("Health", { status: z.literal("Healthy"), version: z.string() });

export const readiness = responseComponent("Readiness", {
  status: z.literal("Ready"),
  checks: z.record(z.string(), z.string()).describe("The result of each check."),
});

const quota = z.strictObject({ units: z.int(), windowSeconds: z.int() });

export const limits = responseComponent("Limits", {
  usersPerRequest: z.int(),
  mintsPerRequest: z.int(),
  bodyBytes: z.int(),
  requestTimeoutSeconds: z.number(),
  pageEntries: z.int(),
  streamsPerKey: z.int(),
  idempotencyKeyCharacters: z.int(),
  heldBytesPerKey: z
    .int()
    .describe("Bytes of request bodies and unread responses that the server holds for one key at once."),
  rollupData: z
    .enum(["calldata", "blobs"])
    .describe(
      "Where vaults of `zk-rollup` go from now on. Those that blobs cannot hold go into calldata all the same; each batch names its kind.",
    ),
  rateLimit: quota.describe(
    "Per API key. A request costs the largest of: one unit; one for each mint entry; one for each KiB of a body above 16 KiB; one for each 4 KiB of a JSON response; one for each MiB of a batch's data.",
  ),
});

export const accessToken = responseComponent("AccessToken", {
  access_token: z.string(),
  token_type: z.literal("Bearer"),
  expires_in: z.int().describe("Seconds."),
  scope: z.string(),
});

export const openApi = responseComponent("OpenApiDocument", z.looseObject({ openapi: z.string() }));

/** RFC 9457, with this API's extension members. */
export const problemDocument = responseComponent("Problem", {
  type: z.string(),
  title: z.string(),
  status: z.int(),
  code: z.string().describe("Stable; never renamed."),
  detail: z.string(),
  requestId: z.string(),
  errors: z
    .array(z.strictObject({ pointer: z.string(), code: z.string(), detail: z.string() }))
    .describe(
      "The bad entries, at most 100. `pointer` is a JSON pointer into the body; for a query parameter, path parameter or header it starts with /query, /path or /headers.",
    ),
  moreErrors: z.boolean().describe("Whether `errors` is incomplete."),
});

/** The problem document of the token route. RFC 6749 adds two members and another media type. */
export const oauthError = responseComponent(
  "OAuthError",
  problemDocument.extend({
    error: z.string().describe("The RFC 6749 error, such as `invalid_client`."),
    error_description: z.string(),
  }),
);
