import { MAX_IDEMPOTENCY_KEY } from "../http/idempotency.ts";
import { limits } from "../schemas/service.ts";
import type { Service } from "../service.ts";
import { type Endpoint, endpoint } from "./api/endpoint.ts";

/** The limits of a server, for `GET /api/v1/limits` and the OpenAPI document. */
export function limitsOf({
  engine,
  bodyBytes,
  requestTimeoutSeconds,
  rateLimit,
  streams,
  memory,
}: Omit<Service, "document">) {
  return {
    usersPerRequest: engine.limits.usersPerRequest,
    mintsPerRequest: engine.limits.mintsPerRequest,
    bodyBytes,
    requestTimeoutSeconds,
    pageEntries: 100,
    streamsPerKey: streams.perKey,
    idempotencyKeyCharacters: MAX_IDEMPOTENCY_KEY,
    heldBytesPerKey: memory.mostPerCaller,
    rollupData: engine.operator.rollupKind(),
    rateLimit,
  };
}

export const limitEndpoints: readonly Endpoint[] = [
  endpoint("Service", "any", "GET /api/v1/limits", "getLimits", {
    summary: "The limits of this server",
    success: { status: 200, description: "The limits.", schemas: [limits] },
    handle: ({ service }) => limitsOf(service),
  }),
];
