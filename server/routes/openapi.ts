import { type Endpoint, publicEndpoint } from "../endpoint.ts";
import { openApi } from "../schemas/service.ts";

export const openApiEndpoints: readonly Endpoint[] = [
  publicEndpoint({
    method: "GET",
    path: "/openapi.json",
    tag: "Service",
    unmetered: true,
    summary: "This document",
    success: { status: 200, description: "OpenAPI 3.1.", schemas: [openApi] },
    handle: ({ service }) => service.document(),
  }),
];
