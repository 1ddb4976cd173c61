import { z } from "zod";
import { STATUSES } from "../../core/index.ts";
import { portal } from "./batches.ts";
import {
  address,
  askedMode,
  batchId,
  createdBetween,
  mode,
  orderedPage,
  outAddress,
  outDecimal,
  outHash,
  outHex,
  outTime,
  outUnits,
  outUuid,
  pageOf,
  reference,
  responseComponent,
  tokenId,
  uuid,
} from "./common.ts";

export const vault = responseComponent("Vault", {
  vaultId: outDecimal,
  userId: outUuid,
  ownerAddress: outAddress,
  assetId: outUuid,
  assetType: outHash,
  ...outUnits,
  mintingBlob: outHex,
  tokenId: outDecimal.nullable().describe("null for ERC-20."),
  dataAvailabilityMode: mode,
  amount: outDecimal,
  availableBalance: outDecimal,
  withdrawnBalance: outDecimal,
  transferredBalance: outDecimal.describe("Units that a transfer has put into other vaults."),
  batchId: z.string(),
  status: z.enum(STATUSES),
  refusal: z
    .string()
    .optional()
    .describe(
      "Why the token refuses the committed vault on L1: it cannot be withdrawn until the token takes it. Absent while it would not.",
    ),
  createdAt: outTime,
  updatedAt: outTime,
});

export const vaultPage = responseComponent("VaultPage", pageOf(vault));

export const vaultQuery = z.strictObject({
  userId: uuid.optional(),
  ownerAddress: address.optional().describe("Of all users of this owner."),
  assetId: uuid.optional(),
  tokenId: tokenId
    .optional()
    .describe("The token's id, for ERC-721 and ERC-1155, in every visible asset unless `assetId` names one."),
  batchId: batchId.optional(),
  dataAvailabilityMode: askedMode.optional(),
  status: z.enum(STATUSES).optional(),
  reference: reference.optional().describe("Vaults with a mint under this reference."),
  ...createdBetween,
  ...orderedPage,
});

export const batchHeader = responseComponent(
  "BatchHeader",
  z
    .strictObject({ batchRoot: outHash, vaultCount: z.int(), committedAt: outDecimal, sequence: outDecimal })
    .describe("The content of a committed batch's header hash on L1."),
);

export const assetPath = z
  .strictObject({ index: z.int(), siblings: z.array(outHash) })
  .describe("The place of the vault's asset in the batch's manifest, and its siblings from the leaf upwards.");

export const provenHop = responseComponent(
  "TransferProof",
  z
    .strictObject({
      outId: outDecimal.describe("The vault that the transfer makes."),
      part: z.int().min(0).max(1).describe("0 for the receiver's vault, 1 for the change."),
      amount: outDecimal.describe("Units of the receiver; 0 for all that was left."),
      to: outAddress,
      deadline: outDecimal,
      list: outHash.describe("EIP-712's hash of all transfers under the signature."),
      signature: outHex,
      header: batchHeader,
      siblings: z.array(outHash).describe("From the leaf upwards."),
    })
    .describe("A transfer in its batch. Time and sequence are 0 until L1 has committed the batch."),
);

/** What the leaf of a vault holds. */
export const vaultContent = z.strictObject({
  vaultId: outDecimal,
  chainId: outDecimal,
  owner: outAddress,
  assetType: outHash,
  amount: outDecimal,
  blob: outHex,
});

export const vaultProof = responseComponent("VaultProof", {
  vault: vaultContent,
  vaultCount: z.int(),
  batchRoot: outHash,
  leaf: outHash,
  siblings: z.array(outHash).describe("From the leaf upwards."),
  assetPath,
  header: batchHeader.nullable().describe("null until L1 has committed the batch."),
  hops: z
    .array(provenHop)
    .optional()
    .describe("Of a vault that transfers made: `vault` is the minted one, and these follow it."),
});

export const ownVaultProof = responseComponent(
  "OwnVaultProof",
  vaultProof.extend({
    portal: portal
      .nullable()
      .describe("The contract that pays the vault, on its token's chain; null when none is configured there."),
    withdrawCalldata: outHex
      .nullable()
      .describe(
        "Calldata of `withdraw` on that contract, for the owner to send: withdraws all that is available to the owner itself. null until that contract has the batch, and when nothing is left.",
      ),
  }),
);
