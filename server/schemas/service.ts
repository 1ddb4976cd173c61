import { z } from "zod";
import { responseComponent } from "./common.ts";

export const health = responseComponent(
  "Health",
  z.strictObject({ status: z.literal("Healthy"), version: z.string() }),
);

export const readiness = responseComponent(
  "Readiness",
  z.strictObject({
    status: z.literal("Ready"),
    checks: z.record(z.string(), z.string()).meta({ description: "What each check found." }),
  }),
);

const quota = z.strictObject({ units: z.int(), windowSeconds: z.int() });

export const limits = responseComponent(
  "Limits",
  z.strictObject({
    usersPerRequest: z.int(),
    mintsPerRequest: z.int(),
    bodyBytes: z.int(),
    requestTimeoutSeconds: z.number(),
    pageEntries: z.int(),
    streamsPerKey: z.int(),
    idempotencyKeyCharacters: z.int(),
    heldBytesPerKey: z.int().meta({
      description: "Bytes of request bodies and unread answers that the server holds for one key at once.",
    }),
    rateLimit: quota.meta({
      description:
        "Per API key. A request costs the largest of: one unit; one for each mint entry; one for each KiB of a body above 16 KiB; one for each 4 KiB of a JSON answer; one for each MiB of a batch's data.",
    }),
  }),
);

export const accessToken = responseComponent(
  "AccessToken",
  z.strictObject({
    access_token: z.string(),
    token_type: z.literal("Bearer"),
    expires_in: z.int().meta({ description: "Seconds." }),
    scope: z.string(),
  }),
);

export const openApi = responseComponent("OpenApiDocument", z.looseObject({ openapi: z.string() }));

/** RFC 9457, with this API's extension members. */
export const problemDocument = responseComponent(
  "Problem",
  z.strictObject({
    type: z.string(),
    title: z.string(),
    status: z.int(),
    code: z.string().meta({ description: "Stable; never renamed." }),
    detail: z.string(),
    requestId: z.string(),
    errors: z.array(z.strictObject({ pointer: z.string(), code: z.string(), detail: z.string() })).meta({
      description:
        "The bad entries, at most 100 of them. `pointer` is a JSON pointer into the body; of a query parameter, path parameter or header it starts with /query, /path or /headers.",
    }),
    moreErrors: z.boolean().meta({ description: "Whether `errors` leaves some out." }),
  }),
);

/** The problem document of the token route, which RFC 6749 gives two more members and another media type. */
export const oauthError = responseComponent(
  "OAuthError",
  problemDocument.extend({
    error: z.string().meta({ description: "As RFC 6749 names it, such as `invalid_client`." }),
    error_description: z.string(),
  }),
);
