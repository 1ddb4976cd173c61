import { application, applicationBody } from "../schemas/application.ts";
import { applicationToWire } from "../schemas/wire.ts";
import { type Endpoint, endpoint } from "./api/endpoint.ts";

const success = { status: 200, description: "The application.", schemas: [application] } as const;

export const applicationEndpoints: readonly Endpoint[] = [
  endpoint({
    operationId: "getApplication",
    method: "GET",
    path: "/api/v1/application",
    tag: "Service",
    access: "any",
    summary: "The application that the credentials belong to",
    success,
    async handle({ service: { engine }, principal }) {
      return applicationToWire(await engine.applications.get(principal.applicationId));
    },
  }),
  endpoint({
    operationId: "setApplicationDefaults",
    method: "PUT",
    path: "/api/v1/application/defaults",
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
