import { application, applicationBody } from "../schemas/application.ts";
import { applicationToWire } from "../schemas/wire.ts";
import { type Endpoint, endpoint } from "./api/endpoint.ts";

const success = { status: 200, description: "The application.", schemas: [application] } as const;

export const applicationEndpoints: readonly Endpoint[] = [
  endpoint("GET /api/v1/application", "getApplication", {
    tag: "Service",
    access: "any",
    summary: "The application that the credentials belong to",
    success,
    async handle({ service: { engine }, principal }) {
      return applicationToWire(await engine.applications.get(principal.applicationId));
    },
  }),
  endpoint("PUT /api/v1/application/defaults", "setApplicationDefaults", {
    tag: "Service",
    access: "assets",
    summary: "Set the mode of the application's mints that name none",
    body: applicationBody,
    example: { dataAvailabilityMode: "validium" },
    success,
    async handle({ service: { engine }, principal, body }) {
      return applicationToWire(await engine.applications.change(principal.applicationId, body));
    },
  }),
];
