import { z } from "zod";
import * as s from "./common.ts";

export const health = s.responseComponent("Health", { status: z.literal("Healthy"), version: z.string() });

export const readiness = s.responseComponent("Readiness", {
  status: z.literal("Ready"),
  checks: z.record(z.string(), z.string()).describe("The result of each check."),
});

const quota = z.strictObject({ units: z.int(), windowSeconds: z.int() });

export const limits = s.responseComponent("Limits", {
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

export const accessToken = s.responseComponent("AccessToken", {
  access_token: z.string(),
  token_type: z.literal("Bearer"),
  expires_in: z.int().describe("Seconds."),
  scope: z.string(),
});

export const openApi = s.responseComponent("OpenApiDocument", z.looseObject({ openapi: z.string() }));

/** RFC 9457, with this API's extension members. */
export const problemDocument = s.responseComponent("Problem", {
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
export const oauthError = s.responseComponent(
  "OAuthError",
  problemDocument.extend({
    error: z.string().describe("The RFC 6749 error, such as `invalid_client`."),
    error_description: z.string(),
  }),
);

const DEFAULT_MODE = {
  description: "The mode of mints without one, of assets without a default of their own; null: they need one.",
};

export const application = s.responseComponent("Application", {
  applicationId: s.outUuid,
  name: z.string(),
  suspended: z.boolean(),
  dataAvailabilityMode: s.mode.nullable().meta(DEFAULT_MODE),
  createdAt: s.outTime,
});

export const applicationBody = s.requestComponent("ApplicationDefaults", {
  dataAvailabilityMode: s.askedMode.nullable().meta(DEFAULT_MODE),
});

export const usage = s.responseComponent("Usage", {
  mints: s.outDecimal.describe("Entries that the application's keys have minted."),
  transactions: z
    .int()
    .describe("Mints, withdrawals and transfers. Each transferred vault counts, and so does the change of a split."),
  keys: z.array(
    z.strictObject({
      keyId: z.string(),
      mintsUsed: s.outDecimal,
      mintQuota: s.outDecimal.nullable().describe("Most entries that the key may ever mint; null: no limit."),
      revokedAt: s.outTime.nullable(),
    }),
  ),
  periods: z
    .array(z.strictObject({ since: s.outTime, until: s.outTime, transactions: z.int() }))
    .describe("Transactions accepted from `since` to before `until`, in order, without a gap."),
});

export const usageQuery = z.strictObject({
  since: s.instant.optional().describe("RFC 3339 with zone; default 30 intervals before `until`."),
  until: s.instant.optional().describe("RFC 3339 with zone; default now."),
  interval: z
    .enum(["hour", "day", "month"])
    .optional()
    .describe("The periods, in UTC; at most 100 of them. Default `day`."),
});
