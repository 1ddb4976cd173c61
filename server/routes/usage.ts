import { usage, usageQuery } from "../schemas/usage.ts";
import { type Endpoint, endpoint } from "./api/endpoint.ts";

export const usageEndpoints: readonly Endpoint[] = [
  endpoint("Service", "read", "GET /api/v1/usage", "getUsage", {
    summary: "The usage of the application and each of its keys, in total and by hour, day or month",
    query: usageQuery,
    success: { status: 200, description: "The usage.", schemas: [usage] },
    inTurn: true,
    handle: ({ engine, applicationId, query }) => engine.transactions.usage(applicationId, query),
  }),
];
