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
    rateLimit: quota.meta({
      description:
        "Per API key. A mint entry costs one unit, any other request one, and each further MiB of a batch's data one more.",
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
        "Every bad entry at once. `pointer` is a JSON pointer into the body; of a query parameter, path parameter or header it starts with /query, /path or /headers.",
    }),
  }),
);
