import type { FastifyReply, FastifyRequest } from "fastify";
import { ServerError } from "../http/errors.ts";
import { health, readiness } from "../schemas/service.ts";
import { type Endpoint, endpoint } from "./api/endpoint.ts";

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

export const healthEndpoints: readonly Endpoint[] = [
  endpoint("Service", "public", "GET /healthz", "getHealth", {
    unmetered: true,
    summary: "Whether the process is alive",
    success: { status: 200, description: "Alive.", schemas: [health], text: HEALTHY },
    handle: ({ service, request, reply }) => sayHealthy(request, reply, service.version),
  }),
  endpoint("Service", "public", "GET /readyz", "getReadiness", {
    unmetered: true,
    summary: "Whether the server can serve: its store, the open batches, and the checks of its operator",
    success: { status: 200, description: "Ready.", schemas: [readiness] },
    errors: ["not_ready"],
    async handle({ service, request }) {
      if (service.draining()) throw new ServerError("shutting_down");
      const found = await service.readiness.look();
      const failed = found.filter(({ error }) => error !== undefined);
      for (const { name, error } of failed) request.log.warn({ err: error, check: name }, "not ready");
      const issues = failed.map(({ name, detail }) => ({
        pointer: `/checks/${name}`,
        code: "not_ready" as const,
        detail,
      }));
      if (issues.length > 0) throw new ServerError("not_ready", undefined, { issues });
      return { status: "Ready" as const, checks: Object.fromEntries(found.map(({ name, detail }) => [name, detail])) };
    },
  }),
];
