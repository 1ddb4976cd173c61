import { z } from "zod";
import { STATUSES } from "../../core/index.ts";
import { portal } from "./batches.ts";
import * as s from "./common.ts";

export const vault = s.responseComponent("Vault", {
  vaultId: s.outDecimal,
  userId: s.outUuid,
  ownerAddress: s.outAddress,
  assetId: s.outUuid,
  assetType: s.outHash,
  ...s.outUnits,
  mintingBlob: s.outHex,
  tokenId: s.outDecimal.nullable().describe("null for ERC-20."),
  dataAvailabilityMode: s.mode,
  amount: s.outDecimal,
  availableBalance: s.outDecimal,
  withdrawnBalance: s.outDecimal,
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
export const vaultPage = s.responseComponent("VaultPage", s.pageOf(vault));

export const vaultQuery = z.strictObject({
  userId: s.uuid.optional(),
  ownerAddress: s.address.optional().describe("Of all users of this owner."),
  assetId: s.uuid.optional(),
  tokenId: s.tokenId
    .optional()
    .describe("The token's id, for ERC-721 and ERC-1155, in every visible asset unless `assetId` names one."),
  batchId: s.batchId.optional(),
  dataAvailabilityMode: s.askedMode.optional(),
  status: z.enum(STATUSES).optional(),
  reference: s.reference.optional().describe("Vaults with a mint under this reference."),
  ...s.createdBetween,
  ...s.orderedPage,
});

export const batchHeader = s.responseComponent(
  "BatchHeader",
  z
    .strictObject({ batchRoot: s.outHash, vaultCount: z.int(), committedAt: s.outDecimal, sequence: s.outDecimal })
    .describe("The content of a committed batch's header hash on L1."),
);

export const assetPath = z
  .strictObject({ index: z.int(), siblings: z.array(s.outHash) })
  .describe("The place of the vault's asset in the batch's manifest, and its siblings from the leaf upwards.");

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

/** What the leaf of a vault holds. */
export const vaultContent = z.strictObject({
  vaultId: s.outDecimal,
  chainId: s.outDecimal,
  owner: s.outAddress,
  assetType: s.outHash,
  amount: s.outDecimal,
  blob: s.outHex,
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
    .describe("Of a vault that transfers made: `vault` is the minted one, and these follow it."),
});

export const ownVaultProof = s.responseComponent(
  "OwnVaultProof",
  vaultProof.extend({
    portal: portal
      .nullable()
      .describe("The contract that pays the vault, on its token's chain; null when none is configured there."),
    withdrawCalldata: s.outHex
      .nullable()
      .describe(
        "Calldata of `withdraw` on that contract, for the owner to send: withdraws all that is available to the owner itself. null until that contract has the batch, and when nothing is left.",
      ),
  }),
);
