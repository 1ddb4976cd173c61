import { z } from "zod";
import { STATUSES } from "../../core/index.ts";
import {
  address,
  askedMode,
  batchId,
  createdBetween,
  mode,
  orderedPage,
  outDecimal,
  outHash,
  outHex,
  outTime,
  outUnits,
  outUuid,
  pageOf,
  reference,
  responseComponent,
  uuid,
  vaultId,
} from "./common.ts";

const type = z.enum(["mint", "withdrawal", "transfer"]);

export const transaction = responseComponent("Transaction", {
  transactionId: z.string(),
  sequence: z.int().describe("Strictly increasing within the application."),
  type,
  status: z.enum(STATUSES),
  mintId: outUuid.nullable(),
  reference: z.string().nullable().describe("Your own name for the mint."),
  userId: outUuid,
  vaultId: outDecimal,
  assetId: outUuid,
  ...outUnits,
  mintingBlob: outHex,
  tokenId: outDecimal.nullable().describe("null for ERC-20."),
  amount: outDecimal.describe("Units. Of a transfer of all that is left: 0 until its batch is sealed."),
  dataAvailabilityMode: mode,
  batchId: z.string(),
  l1TxHash: outHash.nullable(),
  l1BlockNumber: outDecimal.nullable(),
  failure: z.string().nullable(),
  timestamps: z
    .partialRecord(z.enum(STATUSES), outTime)
    .describe("The time of each reached status; others are absent."),
});

export const transactionPage = responseComponent("TransactionPage", pageOf(transaction));

export const transactionQuery = z.strictObject({
  status: z.enum(STATUSES).optional(),
  type: type.optional(),
  userId: uuid.optional(),
  ownerAddress: address.optional().describe("Of all users of this owner."),
  assetId: uuid.optional(),
  vaultId: vaultId.optional(),
  batchId: batchId.optional(),
  mintId: uuid.optional(),
  reference: reference.optional(),
  dataAvailabilityMode: askedMode.optional(),
  ...createdBetween,
  ...orderedPage,
});
