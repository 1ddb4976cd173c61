import { z } from "zod";
import { type BatchVaultProof, type Hex, STATUSES } from "../../core/index.ts";
import { tipOwnerOf } from "../../core/internal.ts";
import { paidBy } from "../http/access/rate-account.ts";
import { type Endpoint, endpoint, json, paged } from "./api/endpoint.ts";
import { examining } from "./api/examined.ts";
import * as s from "./api/fields.ts";
import { portal } from "./batches.ts";

export const vault = s.responseComponent("Vault", {
  vaultId: s.outDecimal,
  userId: s.outUuid,
  ownerAddress: s.outAddress,
  assetId: s.outUuid,
  assetType: s.outHash,
  ...s.outToken,
  mintingBlob: s.outHex,
  tokenId: s.outDecimal.nullable().describe("null for ERC-20."),
  dataAvailabilityMode: s.series,
  amount: s.outDecimal,
  amountDecimal: s.outAmountDecimal,
  availableBalance: s.outDecimal,
  withdrawnBalance: s.outDecimal.describe(
    "Units that L1 has taken: paid as tokens, or put into other vaults by a trade or a renewal.",
  ),
  transferredBalance: s.outDecimal.describe("Units that a transfer has put into other vaults."),
  batchId: z.string(),
  status: z.enum(STATUSES),
  refusal: z
    .string()
    .optional()
    .describe(
      "Why the token refuses the committed vault on L1: it cannot be withdrawn until the token takes it. Absent while it would not.",
    ),
  createdAt: s.outTime,
  updatedAt: s.outTime,
});
export const vaultPages = paged("VaultPage", vault);

export const vaultQuery = z.strictObject({
  userId: s.uuid.optional(),
  ownerAddress: s.address.optional().describe("Only those of all users of this owner."),
  assetId: s.uuid.optional(),
  tokenId: s.tokenId
    .optional()
    .describe(
      "The token's id, for ERC-721 and ERC-1155, in every visible asset unless `assetId` names one.",
    ),
  batchId: s.vaultsBatchId.optional(),
  dataAvailabilityMode: s.askedSeries.optional(),
  status: z.enum(STATUSES).optional(),
  reference: s.reference.optional().describe("Vaults with a mint under this reference."),
  ...s.createdBetween,
  ...s.orderedPage,
});

export const batchHeader = s.responseComponent(
  "BatchHeader",
  z
    .strictObject({
      batchRoot: s.outHash,
      vaultCount: z.int(),
      committedAt: s.outDecimal,
      sequence: s.outDecimal,
    })
    .describe("The content of a committed batch's header hash on L1."),
);

export const assetPath = z
  .strictObject({ index: z.int(), siblings: z.array(s.outHash) })
  .describe(
    "The place of the vault's asset in the batch's manifest, and its siblings from the leaf upwards.",
  );

export const provenHop = s.responseComponent(
  "TransferProof",
  z
    .strictObject({
      outId: s.outDecimal.describe("The vault that the transfer makes."),
      part: z.int().min(0).max(1).describe("0 for the receiver's vault, 1 for the change."),
      amount: s.outDecimal.describe("Units of the receiver; 0 for all that was left."),
      to: s.outAddress,
      deadline: s.outDecimal,
      list: s.outHash.describe("EIP-712's hash of all transfers under the signature."),
      signature: s.outHex,
      header: batchHeader,
      siblings: z.array(s.outHash).describe("From the leaf upwards."),
    })
    .describe("A transfer in its batch. Time and sequence are 0 until L1 has committed the batch."),
);

export const vaultContent = z.strictObject({
  vaultId: s.outDecimal,
  chainId: s.outDecimal,
  owner: s.outAddress,
  assetType: s.outHash,
  amount: s.outDecimal,
  mintingBlob: s.outHex,
});

export const vaultProof = s.responseComponent("VaultProof", {
  vault: vaultContent,
  vaultCount: z.int(),
  batchRoot: s.outHash,
  leaf: s.outHash,
  siblings: z.array(s.outHash).describe("From the leaf upwards."),
  assetPath,
  header: batchHeader.nullable().describe("null until L1 has committed the batch."),
  hops: z
    .array(provenHop)
    .optional()
    .describe("The transfers that made the vault: `vault` is the minted one, and these follow it."),
  refutation: provenHop
    .optional()
    .describe("The record on L1 that spends the vault but does not count; absent without one."),
});

const ownVaultProof = s.responseComponent(
  "OwnVaultProof",
  vaultProof.extend({
    portal: portal
      .nullable()
      .describe(
        "The contract that pays the vault, on its token's chain; null when none is configured there.",
      ),
    withdrawCalldata: s.outHex
      .nullable()
      .describe(
        "Calldata of `withdraw` on that contract, for the owner to send: withdraws all that is available to the owner itself. null until that contract has the batch, and when nothing is left.",
      ),
  }),
);

export const PROOF_ERRORS = [
  "backpressure",
  "kzg_unavailable",
  "proof_not_ready",
  "vault_void",
] as const;

export const vaultEndpoints: readonly Endpoint[] = [
  endpoint("Vaults", "read", "GET /api/v1/vaults", "listVaults", {
    summary: "Vaults of the application, oldest first",
    description:
      "A page can be shorter than `limit` even if there is a next one. With `tokenId` the vaults come batch by batch, without failed ERC-721 mints, because their ids are free again.",
    ...vaultPages,
    query: vaultQuery,
    inTurn: true,
    handle: ({ engine, applicationId, query, ...call }) =>
      examining(call, (options) => engine.vaults.list(applicationId, query, options())),
  }),
  endpoint("Vaults", "read", "GET /api/v1/vaults/{vaultId}", "getVault", {
    summary: "One vault",
    success: json(200, "The vault.", vault),
    handle: ({ engine, applicationId, params }) => engine.vaults.get(applicationId, params.vaultId),
  }),
  endpoint("Vaults", "read", "GET /api/v1/vaults/{vaultId}/proof", "getVaultProof", {
    summary: "A vault's path to its batch root, and calldata for its owner to withdraw alone",
    success: json(200, "The proof, verified before sending.", ownVaultProof),
    errors: PROOF_ERRORS,
    async handle({ engine, applicationId, params: { vaultId }, request }) {
      const own = await engine.vaults.get(applicationId, vaultId);
      const proof = await engine.proofs.vault(vaultId, paidBy(request));
      request.account?.proven(2 * (proof.hops?.length ?? 0));
      const { chainId } = proof.vault;
      const portal = engine.operator.portals().find((each) => each.chainId === chainId) ?? null;
      return {
        ...proof,
        portal,
        withdrawCalldata: await ownCalldata(
          own.availableBalance,
          await engine.proofs.exit(vaultId, paidBy(request)),
        ),
      };
    },
  }),
];

/** Public reads of single vaults: batch data is public, and contains nothing about tenants. */
export const publicVaultEndpoints: readonly Endpoint[] = [
  endpoint("Vaults", "public", "GET /public/v1/vaults/{vaultId}/proof", "getPublicVaultProof", {
    summary: "A vault's content and its path to its batch root",
    success: json(200, "The proof, verified before sending.", vaultProof),
    errors: PROOF_ERRORS,
    async handle({ engine, params, request }) {
      const proof = await engine.proofs.vault(params.vaultId, paidBy(request));
      request.account?.proven(proof.hops?.length ?? 0);
      return proof;
    },
  }),
];

/**
 * The calldata for the owner's own account, without the operator. Null while L1 has no batch of it,
 * and when nothing is left.
 */
async function ownCalldata(quantity: bigint, proof: BatchVaultProof): Promise<Hex | null> {
  const { header } = proof;
  if (header === null || quantity === 0n) return null;
  // Loaded here, because commands share this file's forms.
  const { withdrawCalldata } = await import("../../core/l1/index.ts");
  const recipient = tipOwnerOf(proof);
  return withdrawCalldata({ ...proof, header, quantity, recipient, authorization: null });
}
