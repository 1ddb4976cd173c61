import type { FastifyReply, FastifyRequest } from "fastify";
import { z } from "zod";
import { SCOPES } from "../../core/index.ts";
import packageJson from "../../package.json" with { type: "json" };
import { ServerError } from "../http/errors.ts";
import { sendTag } from "../http/etag.ts";
import { MAX_IDEMPOTENCY_KEY } from "../http/idempotency-key.ts";
import type { Service } from "../service.ts";
import { tokenEndpoints } from "./access-token.ts";
import { type Endpoint, endpoint, json } from "./api/endpoint.ts";
import * as s from "./api/fields.ts";

const readiness = s.responseComponent("Readiness", {
  status: z.literal("Ready"),
  checks: z.record(z.string(), z.string()).describe("The result of each check."),
});

const limits = s.responseComponent("Limits", {
  usersPerRequest: z.int(),
  mintsPerRequest: z.int(),
  bodyBytes: z.int(),
  requestTimeoutSeconds: z.number(),
  pageEntries: z.int(),
  streamsPerKey: z.int(),
  idempotencyKeyCharacters: z.int(),
  heldBytesPerKey: z
    .int()
    .describe(
      "Bytes of request bodies and unread responses that the server holds for one key at once.",
    ),
  rollupData: z
    .enum(["calldata", "blobs"])
    .describe("Where the vaults of the next `zk-rollup` batch go when it is sealed."),
  rateLimit: z
    .strictObject({ units: z.int(), windowSeconds: z.int() })
    .describe(
      "Per API key. A request costs the largest of: one unit; one for each mint entry; one for each KiB of a body above 16 KiB; one for each 4 KiB of a JSON response; one for each MiB of a batch's data.",
    ),
});

const DEFAULT_MODE = {
  description:
    "The mode of mints without one, of assets without a default of their own; null: they need one.",
};

export const application = s.responseComponent("Application", {
  applicationId: s.outUuid,
  name: z.string(),
  suspended: z.boolean(),
  dataAvailabilityMode: s.mode.nullable().meta(DEFAULT_MODE),
  createdAt: s.outTime,
});

const applicationBody = s.requestComponent("ApplicationDefaults", {
  dataAvailabilityMode: s.askedMode.nullable().meta(DEFAULT_MODE),
});

export const apiKey = s.responseComponent("ApiKey", {
  keyId: z.string(),
  applicationId: s.outUuid,
  name: z.string().nullable(),
  scopes: z.array(z.enum(SCOPES)),
  mintQuota: s.outDecimal
    .nullable()
    .describe("Most entries that the key may ever mint; null: no limit."),
  mintsUsed: s.outDecimal,
  createdAt: s.outTime,
  expiresAt: s.outTime.nullable(),
  revokedAt: s.outTime.nullable(),
});

const usage = s.responseComponent("Usage", {
  mints: s.outDecimal.describe("Entries that the application's keys have minted."),
  transactions: z
    .int()
    .describe(
      "Mints, withdrawals and transfers. Each transferred vault counts, and so does the change of a split.",
    ),
  keysInUse: z.int().describe("Keys of programs and people that are not revoked."),
  keys: z
    .array(apiKey.pick({ keyId: true, mintsUsed: true, mintQuota: true, revokedAt: true }))
    .describe("One page of all keys, oldest first."),
  periods: z
    .array(z.strictObject({ since: s.outTime, until: s.outTime, transactions: z.int() }))
    .describe("Transactions accepted from `since` to before `until`, in order, without a gap."),
  pagination: s.pagination,
});

const usageQuery = z.strictObject({
  since: s.instant.optional().describe("RFC 3339 with zone; default 30 intervals before `until`."),
  until: s.instant.optional().describe("RFC 3339 with zone; default now."),
  interval: z
    .enum(["hour", "day", "month"])
    .optional()
    .describe("The periods, in UTC; at most 100 of them. Default `day`."),
  ...s.page,
});

/** The limits of a server, for `GET /api/v1/limits` and the OpenAPI document. */
export function limitsOf({ engine, streams, memory, ...service }: Omit<Service, "document">) {
  return {
    usersPerRequest: engine.limits.usersPerRequest,
    mintsPerRequest: engine.limits.mintsPerRequest,
    bodyBytes: service.bodyBytes,
    requestTimeoutSeconds: service.requestTimeoutSeconds,
    pageEntries: 100,
    streamsPerKey: streams.perKey,
    idempotencyKeyCharacters: MAX_IDEMPOTENCY_KEY,
    heldBytesPerKey: memory.mostPerCaller,
    rollupData: engine.operator.rollupKind(),
    rateLimit: service.rateLimit,
  };
}

/** The text that probes of the original expect. */
const HEALTHY = "Healthy" as const;

/**
 * Reports that the process is alive: as JSON, or as plain text if the client accepts plain text,
 * also beside JSON.
 */
export async function sayHealthy(
  { headers: { accept = "" } }: FastifyRequest,
  reply: FastifyReply,
) {
  reply.header("vary", "accept");
  // The original's client accepts both, and compares with the bare word.
  const wantsText = /(?:^|,)\s*text\/plain\b/i.test(accept);
  if (!wantsText) return { status: HEALTHY, version: packageJson.version } as const;
  reply.type("text/plain; charset=utf-8");
  return HEALTHY;
}

const oneApplication = json(200, "The application.", application);

export const serviceEndpoints: readonly Endpoint[] = [
  endpoint("Service", "any", "GET /api/v1/limits", "getLimits", {
    summary: "The limits of this server",
    success: json(200, "The limits.", limits),
    handle: ({ service }) => limitsOf(service),
  }),
  endpoint("Service", "any", "GET /api/v1/application", "getApplication", {
    summary: "The application that the credentials belong to",
    success: oneApplication,
    handle: ({ engine, applicationId }) => engine.applications.get(applicationId),
  }),
  endpoint("Service", "assets", "PUT /api/v1/application/defaults", "setApplicationDefaults", {
    summary: "Set the mode of the application's mints that name none",
    body: applicationBody,
    example: { dataAvailabilityMode: "validium" },
    success: oneApplication,
    handle: ({ engine, applicationId, body }) => engine.applications.change(applicationId, body),
  }),
  endpoint("Service", "read", "GET /api/v1/usage", "getUsage", {
    summary:
      "The usage of the application and each of its keys, in total and by hour, day or month",
    query: usageQuery,
    success: json(200, "The usage.", usage),
    inTurn: true,
    handle: ({ engine, applicationId, query }) => engine.transactions.usage(applicationId, query),
  }),
  ...tokenEndpoints,
  endpoint("Service", "public", "GET /healthz", "getHealth", {
    unmetered: true,
    summary: "Whether the process is alive",
    success: {
      ...json(
        200,
        "Alive.",
        s.responseComponent("Health", { status: z.literal("Healthy"), version: z.string() }),
      ),
      text: HEALTHY,
    },
    handle: ({ request, reply }) => sayHealthy(request, reply),
  }),
  endpoint("Service", "public", "GET /readyz", "getReadiness", {
    unmetered: true,
    summary:
      "Whether the server can serve: its store, the open batches, and the checks of its operator",
    success: json(200, "Ready.", readiness),
    errors: ["not_ready"],
    async handle({ service, request }) {
      if (service.stopping.aborted) throw new ServerError("shutting_down");
      const found = await service.findings();
      const failed = found.filter(({ error }) => error !== undefined);
      for (const { name, error } of failed)
        request.log.warn({ err: error, check: name }, "not ready");
      const issues = failed.map(({ name, detail }) => {
        return { pointer: `/checks/${name}`, code: "not_ready" as const, detail };
      });
      if (issues.length > 0) throw new ServerError("not_ready", undefined, { issues });
      return {
        status: "Ready" as const,
        checks: Object.fromEntries(found.map(({ name, detail }) => [name, detail])),
      };
    },
  }),
  endpoint("Service", "public", "GET /openapi.json", "getOpenApiDocument", {
    summary: "This document",
    headers: { "If-None-Match": "The `ETag` of an earlier response." },
    success: {
      ...json(
        200,
        "OpenAPI 3.1.",
        s.responseComponent("OpenApiDocument", z.looseObject({ openapi: z.string() })),
      ),
      headers: { ETag: "Identifies this version of the document." },
      unchanged: "`If-None-Match` names the present document.",
    },
    handle({ service, request, reply }) {
      const { bytes, tag } = service.document;
      reply.header("cache-control", "no-cache");
      if (sendTag(request, reply, tag)) return reply.send();
      request.account?.share();
      reply.type("application/json; charset=utf-8");
      return bytes;
    },
  }),
];
