import { type Endpoint, endpoint } from "../http/endpoint.ts";
import { state } from "../schemas/batches.ts";
import type { Service } from "../service.ts";
import { stateToWire } from "../wire/wire.ts";

const definition = {
  method: "GET",
  tag: "State",
  summary: "State roots and commitment: of all sealed batches, and of those committed on L1",
  success: { status: 200, description: "The state.", schemas: [state] },
  async handle({ service: { engine } }: { service: Service }) {
    return stateToWire(engine, engine.batches.state(), await engine.batches.committedState());
  },
} as const;

export const stateEndpoints: readonly Endpoint[] = [
  endpoint({ ...definition, path: "/api/v1/state", access: "read" }),
  endpoint({ ...definition, path: "/public/v1/state", access: "public" }),
];
