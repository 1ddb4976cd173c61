import { z } from "zod";
import { STATUSES } from "../../core/index.ts";
import * as s from "./common.ts";

const type = z.enum(["mint", "withdrawal", "transfer"]);

export const transaction = s.responseComponent("Transaction", {
  transactionId: z.string(),
  sequence: z.int().describe("Strictly increasing within the application."),
  type,
  status: z.enum(STATUSES),
  mintId: s.outUuid.nullable(),
  reference: z.string().nullable().describe("Your own name for the mint."),
  userId: s.outUuid,
  vaultId: s.outDecimal,
  assetId: s.outUuid,
  ...s.outUnits,
  mintingBlob: s.outHex,
  tokenId: s.outDecimal.nullable().describe("null for ERC-20."),
  amount: s.outDecimal.describe("Units. Of a transfer of all that is left: 0 until its batch is sealed."),
  dataAvailabilityMode: s.mode,
  batchId: z.string(),
  l1TxHash: s.outHash.nullable(),
  l1BlockNumber: s.outDecimal.nullable(),
  failure: z.string().nullable(),
  timestamps: z
    .partialRecord(z.enum(STATUSES), s.outTime)
    .describe("The time of each reached status; others are absent."),
});
export const transactionPage = s.responseComponent("TransactionPage", s.pageOf(transaction));

export const transactionQuery = z.strictObject({
  status: z.enum(STATUSES).optional(),
  type: type.optional(),
  userId: s.uuid.optional(),
  ownerAddress: s.address.optional().describe("Of all users of this owner."),
  assetId: s.uuid.optional(),
  vaultId: s.vaultId.optional(),
  batchId: s.batchId.optional(),
  mintId: s.uuid.optional(),
  reference: s.reference.optional(),
  dataAvailabilityMode: s.askedMode.optional(),
  ...s.createdBetween,
  ...s.orderedPage,
});
