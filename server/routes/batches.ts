import { MintmarkError, type Mode } from "../../core/index.ts";
import { batch, batchPage, batchQuery, blobProofs, state } from "../schemas/batches.ts";
import { batchView } from "../schemas/wire.ts";
import { type Endpoint, endpoint, json } from "./api/endpoint.ts";
import { paidBy } from "./vaults.ts";

// Batches and state are the same for everyone, so each read exists twice: under /api with credentials, under /public without.
const PRIVATE = { base: "/api/v1", access: "read", name: "" } as const;
const PUBLIC = { base: "/public/v1", access: "public", name: "Public" } as const;

function readsOfBatches({ base, access, name }: typeof PRIVATE | typeof PUBLIC): readonly Endpoint[] {
  return [
    endpoint("Batches", access, `GET ${base}/batches`, `list${name}Batches`, {
      summary: "Batches, newest first",
      query: batchQuery,
      success: json(200, "One page.", batchPage),
      async handle({ engine, query }) {
        const page = await engine.batches.list(query);
        return { ...page, data: page.data.map(batchView) };
      },
    }),
    endpoint("Batches", access, `GET ${base}/batches/{batchId}`, `get${name}Batch`, {
      summary: "One batch: roots, counts, L1 transaction",
      success: json(200, "The batch.", batch),
      errors: ["batch_not_found"],
      handle: async ({ engine, params }) => batchView(await engine.batches.get(...batchOf(params.batchId))),
    }),
    endpoint("Batches", access, `GET ${base}/batches/{batchId}/data`, `get${name}BatchData`, {
      summary: "A sealed batch's encoded data, from which anyone can compute its root",
      oneByOne: true,
      description: "Costs one unit of the rate limit, plus one for each further MiB.",
      success: { status: 200, description: "docs/protocol.md, section 4.", mediaType: "application/octet-stream" },
      errors: ["batch_not_found", "proof_not_ready"],
      async handle({ service: { outgoingBatches }, params, request, reply }) {
        const isPublic = request.principal === null;
        const bytes = await outgoingBatches.data(...batchOf(params.batchId), reply.raw, isPublic);
        request.account?.share();
        reply.type("application/octet-stream");
        return bytes;
      },
    }),
    endpoint("Batches", access, `GET ${base}/batches/{batchId}/blobs`, `list${name}BatchBlobs`, {
      summary: "The proofs of a sealed batch's blobs, by which a browser checks its data",
      success: json(200, "EIP-4844's proof of each blob.", blobProofs),
      errors: ["backpressure", "batch_not_found", "kzg_unavailable", "proof_not_ready"],
      handle: async ({ engine, params, request }) => ({
        data: await engine.proofs.blobs(...batchOf(params.batchId), paidBy(request)),
      }),
    }),
  ];
}

function readOfState({ base, access, name }: typeof PRIVATE | typeof PUBLIC): Endpoint {
  return endpoint("State", access, `GET ${base}/state`, `get${name}State`, {
    summary: "State roots and commitment: of all sealed batches, and of those committed on L1",
    success: json(200, "The state.", state),
    async handle({ engine: { settlement, operator, batches } }) {
      const [sealed, committed] = [batches.state(), await batches.committedState()];
      return { ...settlement, portals: operator.portals(), sealed, committed };
    },
  });
}

export const batchEndpoints = [...readsOfBatches(PRIVATE), ...readsOfBatches(PUBLIC)];
export const stateEndpoints = [readOfState(PRIVATE), readOfState(PUBLIC)];

/** Splits `zk-rollup-3`. Any other text, and a number beyond all batches, is a batch that does not exist. */
export function batchOf(batchId: string): [Mode, number] {
  const [, mode, number] = /^(validium|zk-rollup)-(0|[1-9]\d{0,9})$/.exec(batchId) ?? [];
  if (mode === undefined || Number(number) >= 2 ** 32) throw new MintmarkError("batch_not_found");
  return [mode as Mode, Number(number)];
}
