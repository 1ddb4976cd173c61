import { z } from "zod";
import { BATCH_KINDS } from "../../core/index.ts";
import { mode, outAddress, outDecimal, outHash, outTime, page, pageOf, responseComponent } from "./common.ts";

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

export const blobProofs = responseComponent("BlobProofs", {
  data: z
    .array(z.strictObject({ commitment: outPoint, proof: outPoint }))
    .describe("KZG commitment and proof of each blob, in order; empty for a batch without blobs."),
});
export const batchPage = responseComponent("BatchPage", pageOf(batch));
export const batchQuery = z.strictObject({ mode: mode.optional(), ...page });

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

export const state = responseComponent("State", {
  chainId: outDecimal,
  contract: z.string(),
  engineVersion: z.int(),
  portals: z
    .array(portal)
    .describe(
      "The contracts that pay withdrawals, each of its own chain's tokens: the settlement contract, then its mirrors. Owners sign for these.",
    ),
  sealed: roots.describe("Of all sealed batches."),
  committed: roots.describe("Of the batches committed on L1."),
});
