import { application, applicationBody } from "../schemas/application.ts";
import { type Endpoint, endpoint } from "./api/endpoint.ts";

const success = { status: 200, description: "The application.", schemas: [application] } as const;

export const applicationEndpoints: readonly Endpoint[] = [
  endpoint("GET /api/v1/application", "getApplication", {
    tag: "Service",
    access: "any",
    summary: "The application that the credentials belong to",
    success,
    handle: ({ engine, applicationId }) => engine.applications.get(applicationId),
  }),
  endpoint("PUT /api/v1/application/defaults", "setApplicationDefaults", {
    tag: "Service",
    access: "assets",
    summary: "Set the mode of the application's mints that name none",
    body: applicationBody,
    example: { dataAvailabilityMode: "validium" },
    success,
    handle: ({ engine, applicationId, body }) => engine.applications.change(applicationId, body),
  }),
];
