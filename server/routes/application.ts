import { application, applicationBody } from "../schemas/application.ts";
import { type Endpoint, endpoint } from "./api/endpoint.ts";

const success = { status: 200, description: "The application.", schemas: [application] } as const;

export const applicationEndpoints: readonly Endpoint[] = [
  endpoint("Service", "any", "GET /api/v1/application", "getApplication", {
    summary: "The application that the credentials belong to",
    success,
    handle: ({ engine, applicationId }) => engine.applications.get(applicationId),
  }),
  endpoint("Service", "assets", "PUT /api/v1/application/defaults", "setApplicationDefaults", {
    summary: "Set the mode of the application's mints that name none",
    body: applicationBody,
    example: { dataAvailabilityMode: "validium" },
    success,
    handle: ({ engine, applicationId, body }) => engine.applications.change(applicationId, body),
  }),
];
