import { z } from "zod";
import {
  BATCH_KINDS,
  type Batch,
  type Engine,
  MintmarkError,
  type Mode,
} from "../../core/index.ts";
import { paidBy } from "../http/access/rate-account.ts";
import { type Endpoint, endpoint, json, paged } from "./api/endpoint.ts";
import {
  mode,
  outAddress,
  outDecimal,
  outHash,
  outTime,
  page,
  responseComponent,
} from "./api/fields.ts";

const BATCH_STATUSES = ["open", "sealed", "submitted", "settled", "finalized"] as const;

export const batch = responseComponent("Batch", {
  batchId: z.string(),
  mode,
  batchNumber: z.int(),
  kind: z
    .enum(BATCH_KINDS)
    .describe(
      "Where the batch's data are: with the committee (`validium`), in a transaction's calldata, or in blobs, which Ethereum's nodes keep for about 18 days. A batch of `transfers` has no mints, and its data are in calldata.",
    ),
  vaultCount: z.int(),
  status: z.enum(BATCH_STATUSES),
  assets: z
    .array(z.strictObject({ chainId: outDecimal, assetType: outHash }))
    .describe("The batch's manifest: the assets of its vaults, ascending. Empty while it is open."),
  leftOut: z
    .array(z.strictObject({ chainId: outDecimal, assetType: outHash, failure: z.string() }))
    .describe(
      "Assets that L1 leaves out of the batch because their issuer's consent is missing, with the reason. Their mints fail when the commit is final.",
    ),
  content: outHash
    .nullable()
    .describe(
      "Root of the tree of the batch's vaults; of a batch in blobs, the hash of its count, manifest and blobs.",
    ),
  batchRoot: outHash.nullable().describe("The root over the content and the manifest."),
  dataHash: outHash.nullable(),
  stateRoot: outHash.nullable().describe("Root of the mode's state tree after this batch."),
  l1TxHash: outHash.nullable(),
  l1BlockNumber: outDecimal.nullable(),
  committedAt: outDecimal.nullable().describe("L1 block time, seconds since 1970."),
  l1Sequence: outDecimal.nullable().describe("Global order of commits on L1."),
  timestamps: z.partialRecord(z.enum(BATCH_STATUSES), outTime),
});

/** 48 bytes: a compressed point. */
const outPoint = z
  .string()
  .regex(/^0x[0-9a-f]{96}$/)
  .meta({ examples: [`0xc0${"00".repeat(47)}`] });

const blobProofs = responseComponent("BlobProofs", {
  data: z
    .array(z.strictObject({ commitment: outPoint, proof: outPoint }))
    .describe("KZG commitment and proof of each blob, in order; empty for a batch without blobs."),
});
const batches = {
  ...paged("BatchPage", batch),
  query: z.strictObject({ mode: mode.optional(), ...page }),
};

const roots = z.strictObject({
  countValidium: z.int(),
  countRollup: z.int(),
  rootValidium: outHash,
  rootRollup: outHash,
  commitment: outHash,
});

export const portal = responseComponent(
  "Portal",
  z
    .strictObject({ chainId: outDecimal, contract: outAddress })
    .describe("A contract that pays withdrawals of its own chain's tokens."),
);

const state = responseComponent("State", {
  chainId: outDecimal,
  contract: z.string(),
  engineVersion: z.int(),
  portals: z
    .array(portal)
    .describe(
      "The contracts that pay withdrawals, each of its own chain's tokens: the settlement contract, then its mirrors. Owners sign for these.",
    ),
  sealed: roots.describe("The roots of all sealed batches."),
  committed: roots.describe("The roots of the batches committed on L1."),
});

// Batches and state are the same for everyone, so each read exists twice: under /api with
// credentials, under /public without.
const PRIVATE = { base: "/api/v1", access: "read", name: "" } as const;
const PUBLIC = { base: "/public/v1", access: "public", name: "Public" } as const;

function readsOfBatches({
  base,
  access,
  name,
}: typeof PRIVATE | typeof PUBLIC): readonly Endpoint[] {
  return [
    endpoint("Batches", access, `GET ${base}/batches`, `list${name}Batches`, {
      summary: "Batches, newest first",
      ...batches,
      handle: ({ engine, query }) => batchesOf(engine, query),
    }),
    endpoint("Batches", access, `GET ${base}/batches/{batchId}`, `get${name}Batch`, {
      summary: "One batch: roots, counts, L1 transaction",
      success: json(200, "The batch.", batch),
      handle: async ({ engine, params }) =>
        batchView(await engine.batches.get(...batchOf(params.batchId))),
    }),
    endpoint("Batches", access, `GET ${base}/batches/{batchId}/data`, `get${name}BatchData`, {
      summary: "A sealed batch's encoded data, from which anyone can compute its root",
      oneByOne: true,
      description: "Costs one unit of the rate limit, plus one for each further MiB.",
      success: {
        status: 200,
        description: "docs/protocol.md, section 4.",
        mediaType: "application/octet-stream",
      },
      errors: ["proof_not_ready"],
      async handle({ service: { batchData }, params, request, reply }) {
        const isPublic = request.principal === null;
        const bytes = await batchData(...batchOf(params.batchId), reply.raw, isPublic);
        request.account?.share();
        reply.type("application/octet-stream");
        return bytes;
      },
    }),
    endpoint("Batches", access, `GET ${base}/batches/{batchId}/blobs`, `list${name}BatchBlobs`, {
      summary: "The proofs of a sealed batch's blobs, by which a browser checks its data",
      success: json(200, "EIP-4844's proof of each blob.", blobProofs),
      errors: ["backpressure", "kzg_unavailable", "proof_not_ready"],
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

/**
 * Splits `zk-rollup-3`. Any other text, and a number beyond all batches, is a batch that does not
 * exist.
 */
export function batchOf(batchId: string): [Mode, number] {
  const [, mode, number] = /^(validium|zk-rollup)-(0|[1-9]\d{0,9})$/.exec(batchId) ?? [];
  if (mode === undefined || Number(number) >= 2 ** 32) throw new MintmarkError("batch_not_found");
  return [mode as Mode, Number(number)];
}

export async function batchesOf(
  { batches }: Engine,
  filter: Parameters<Engine["batches"]["list"]>[0],
) {
  const page = await batches.list(filter);
  return { ...page, data: page.data.map(batchView) };
}

/** A batch with the assets that L1 leaves out by their names. */
export function batchView(from: Batch) {
  const leftOut = (from.leftOut ?? []).flatMap(({ asset, failure }) => {
    const named = from.assets[asset];
    return named === undefined ? [] : [{ ...named, failure }];
  });
  return { ...from, leftOut };
}
