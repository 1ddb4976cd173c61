import { usage, usageQuery } from "../schemas/usage.ts";
import { usageToWire } from "../schemas/wire.ts";
import { type Endpoint, endpoint } from "./api/endpoint.ts";

export const usageEndpoints: readonly Endpoint[] = [
  endpoint("GET /api/v1/usage", "getUsage", {
    tag: "Service",
    access: "read",
    summary: "The usage of the application and each of its keys, in total and by hour, day or month",
    query: usageQuery,
    success: { status: 200, description: "The usage.", schemas: [usage] },
    async handle({ service: { engine, turns }, principal, query }) {
      await turns.turn(principal.applicationId);
      return usageToWire(await engine.transactions.usage(principal.applicationId, query));
    },
  }),
];
