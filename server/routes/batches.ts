import type { z } from "zod";
import { MintmarkError, MODES, type Mode } from "../../core/index.ts";
import { batch, batchPage, batchParams, batchQuery, blobProofs, state } from "../schemas/batches.ts";
import { batchToWire, pageToWire, stateToWire } from "../schemas/wire.ts";
import type { Service } from "../service.ts";
import { type Call, type Endpoint, endpoint } from "./api/endpoint.ts";
import { paidBy } from "./vaults.ts";

type Input<Name extends string, Schema extends z.ZodType> = { readonly service: Service } & Readonly<
  Record<Name, z.output<Schema>>
>;

// Batches and state are the same for everyone, so each read exists twice: under /api with credentials, under /public without.

const list = {
  tag: "Batches",
  summary: "Batches, newest first",
  query: batchQuery,
  success: { status: 200, description: "One page.", schemas: [batchPage] },
  async handle({ service: { engine }, query }: Input<"query", typeof batchQuery>) {
    return pageToWire(await engine.batches.list(query), batchToWire);
  },
} as const;

const one = {
  tag: "Batches",
  summary: "One batch: roots, counts, L1 transaction",
  params: batchParams,
  success: { status: 200, description: "The batch.", schemas: [batch] },
  errors: ["batch_not_found"],
  async handle({ service: { engine }, params }: Input<"params", typeof batchParams>) {
    const { mode, batchNumber } = batchOf(params.batchId);
    return batchToWire(await engine.batches.get(mode, batchNumber));
  },
} as const;

const data = {
  tag: "Batches",
  summary: "A sealed batch's encoded data, from which anyone can compute its root",
  oneByOne: true,
  description: "Costs one unit of the rate limit, plus one for each further MiB.",
  params: batchParams,
  success: { status: 200, description: "docs/protocol.md, section 4.", mediaType: "application/octet-stream" },
  errors: ["batch_not_found", "proof_not_ready"],
  async handle({
    service: { outgoingBatches },
    params,
    request,
    reply,
  }: Input<"params", typeof batchParams> & Pick<Call<"public", unknown, unknown, unknown>, "request" | "reply">) {
    const { mode, batchNumber } = batchOf(params.batchId);
    const bytes = await outgoingBatches.data(mode, batchNumber, reply.raw, request.principal === null);
    request.account?.share();
    reply.type("application/octet-stream");
    return bytes;
  },
} as const;

const blobs = {
  tag: "Batches",
  summary: "The proofs of a sealed batch's blobs, by which a browser checks its data",
  params: batchParams,
  success: { status: 200, description: "EIP-4844's proof of each blob.", schemas: [blobProofs] },
  errors: ["backpressure", "batch_not_found", "kzg_unavailable", "proof_not_ready"],
  async handle({
    service: { engine },
    params,
    request,
  }: Input<"params", typeof batchParams> & Pick<Call<"public", unknown, unknown, unknown>, "request">) {
    const { mode, batchNumber } = batchOf(params.batchId);
    return { data: await engine.proofs.blobs(mode, batchNumber, paidBy(request)) };
  },
} as const;

const stateRead = {
  tag: "State",
  summary: "State roots and commitment: of all sealed batches, and of those committed on L1",
  success: { status: 200, description: "The state.", schemas: [state] },
  async handle({ service: { engine } }: { readonly service: Service }) {
    return stateToWire(engine, engine.batches.state(), await engine.batches.committedState());
  },
} as const;

export const batchEndpoints: readonly Endpoint[] = [
  endpoint("GET /api/v1/batches", "listBatches", { ...list, access: "read" }),
  endpoint("GET /api/v1/batches/{batchId}", "getBatch", { ...one, access: "read" }),
  endpoint("GET /api/v1/batches/{batchId}/data", "getBatchData", { ...data, access: "read" }),
  endpoint("GET /api/v1/batches/{batchId}/blobs", "listBatchBlobs", { ...blobs, access: "read" }),
  endpoint("GET /public/v1/batches", "listPublicBatches", { ...list, access: "public" }),
  endpoint("GET /public/v1/batches/{batchId}", "getPublicBatch", { ...one, access: "public" }),
  endpoint("GET /public/v1/batches/{batchId}/data", "getPublicBatchData", { ...data, access: "public" }),
  endpoint("GET /public/v1/batches/{batchId}/blobs", "listPublicBatchBlobs", { ...blobs, access: "public" }),
];

export const stateEndpoints: readonly Endpoint[] = [
  endpoint("GET /api/v1/state", "getState", { ...stateRead, access: "read" }),
  endpoint("GET /public/v1/state", "getPublicState", { ...stateRead, access: "public" }),
];

/** Splits `zk-rollup-3`. A number beyond all batches is a batch that does not exist. */
function batchOf(batchId: string): { mode: Mode; batchNumber: number } {
  const mode = MODES.find((name) => batchId.startsWith(`${name}-`));
  const batchNumber = Number(batchId.slice(batchId.lastIndexOf("-") + 1));
  if (mode === undefined || batchNumber >= 2 ** 32) throw new MintmarkError("batch_not_found");
  return { mode, batchNumber };
}
