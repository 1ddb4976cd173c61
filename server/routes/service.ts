import type { FastifyReply, FastifyRequest } from "fastify";
import { ServerError } from "../http/errors.ts";
import { sendTag, tagOf } from "../http/etag.ts";
import { MAX_IDEMPOTENCY_KEY } from "../http/idempotency.ts";
import * as s from "../schemas/service.ts";
import type { Service } from "../service.ts";
import { tokenEndpoints } from "./access-token.ts";
import { type Endpoint, endpoint, json } from "./api/endpoint.ts";

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

/** Reports that the process is alive: as JSON, or as plain text if the client accepts plain text, also beside JSON. */
export function sayHealthy({ headers: { accept = "" } }: FastifyRequest, reply: FastifyReply, version: string) {
  reply.header("vary", "accept");
  // The original's client accepts both, and compares with the bare word.
  const wantsText = /(?:^|,)\s*text\/plain\b/i.test(accept);
  if (!wantsText) return { status: HEALTHY, version } as const;
  reply.type("text/plain; charset=utf-8");
  return HEALTHY;
}

/** A server's document never changes, so its bytes are made once. */
const documents = new WeakMap<Service, { readonly bytes: Buffer; readonly tag: string }>();

function documentOf(service: Service) {
  const known = documents.get(service);
  if (known !== undefined) return known;
  const bytes = Buffer.from(JSON.stringify(service.document()));
  const made = { bytes, tag: tagOf(bytes) };
  documents.set(service, made);
  return made;
}

const application = json(200, "The application.", s.application);

export const serviceEndpoints: readonly Endpoint[] = [
  endpoint("Service", "any", "GET /api/v1/limits", "getLimits", {
    summary: "The limits of this server",
    success: json(200, "The limits.", s.limits),
    handle: ({ service }) => limitsOf(service),
  }),
  endpoint("Service", "any", "GET /api/v1/application", "getApplication", {
    summary: "The application that the credentials belong to",
    success: application,
    handle: ({ engine, applicationId }) => engine.applications.get(applicationId),
  }),
  endpoint("Service", "assets", "PUT /api/v1/application/defaults", "setApplicationDefaults", {
    summary: "Set the mode of the application's mints that name none",
    body: s.applicationBody,
    example: { dataAvailabilityMode: "validium" },
    success: application,
    handle: ({ engine, applicationId, body }) => engine.applications.change(applicationId, body),
  }),
  endpoint("Service", "read", "GET /api/v1/usage", "getUsage", {
    summary: "The usage of the application and each of its keys, in total and by hour, day or month",
    query: s.usageQuery,
    success: json(200, "The usage.", s.usage),
    inTurn: true,
    handle: ({ engine, applicationId, query }) => engine.transactions.usage(applicationId, query),
  }),
  ...tokenEndpoints,
  endpoint("Service", "public", "GET /healthz", "getHealth", {
    unmetered: true,
    summary: "Whether the process is alive",
    success: { ...json(200, "Alive.", s.health), text: HEALTHY },
    handle: ({ service, request, reply }) => sayHealthy(request, reply, service.version),
  }),
  endpoint("Service", "public", "GET /readyz", "getReadiness", {
    unmetered: true,
    summary: "Whether the server can serve: its store, the open batches, and the checks of its operator",
    success: json(200, "Ready.", s.readiness),
    errors: ["not_ready"],
    async handle({ service, request }) {
      if (service.draining()) throw new ServerError("shutting_down");
      const found = await service.readiness.findings();
      const failed = found.filter(({ error }) => error !== undefined);
      for (const { name, error } of failed) request.log.warn({ err: error, check: name }, "not ready");
      const issues = failed.map(({ name, detail }) => {
        return { pointer: `/checks/${name}`, code: "not_ready" as const, detail };
      });
      if (issues.length > 0) throw new ServerError("not_ready", undefined, { issues });
      return { status: "Ready" as const, checks: Object.fromEntries(found.map(({ name, detail }) => [name, detail])) };
    },
  }),
  endpoint("Service", "public", "GET /openapi.json", "getOpenApiDocument", {
    summary: "This document",
    headers: { "If-None-Match": "The `ETag` of an earlier response." },
    success: {
      ...json(200, "OpenAPI 3.1.", s.openApi),
      headers: { ETag: "Identifies this version of the document." },
      unchanged: "`If-None-Match` names the present document.",
    },
    handle({ service, request, reply }) {
      const { bytes, tag } = documentOf(service);
      reply.header("cache-control", "no-cache");
      if (sendTag(request, reply, tag)) return reply.send();
      request.account?.share();
      reply.type("application/json; charset=utf-8");
      return bytes;
    },
  }),
];
