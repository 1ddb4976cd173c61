import { z } from "zod";
import { STATUSES } from "../../core/index.ts";
import { type Endpoint, endpoint, json, paged } from "./api/endpoint.ts";
import { examining } from "./api/examined.ts";
import * as s from "./api/fields.ts";

const type = z.enum(["mint", "withdrawal", "transfer", "deposit"]);

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
  ...s.outToken,
  mintingBlob: s.outHex,
  tokenId: s.outDecimal.nullable().describe("null for ERC-20."),
  amount: s.outDecimal.describe(
    "Units. Of a transfer of all that is left: 0 until its batch is sealed.",
  ),
  amountDecimal: s.outAmountDecimal,
  dataAvailabilityMode: s.series,
  batchId: z.string(),
  l1TxHash: s.outHash.nullable(),
  l1BlockNumber: s.outDecimal.nullable(),
  failure: z.string().nullable(),
  timestamps: z
    .partialRecord(z.enum(STATUSES), s.outTime)
    .describe("The time of each reached status; others are absent."),
});

export const transactionQuery = z.strictObject({
  status: z.enum(STATUSES).optional(),
  type: type.optional(),
  userId: s.uuid.optional(),
  ownerAddress: s.address.optional().describe("Only those of all users of this owner."),
  assetId: s.uuid.optional(),
  vaultId: s.vaultId.optional(),
  batchId: s.vaultsBatchId.optional(),
  mintId: s.uuid.optional(),
  reference: s.reference.optional(),
  dataAvailabilityMode: s.askedSeries.optional(),
  ...s.createdBetween,
  ...s.orderedPage,
});

export const transactionEndpoints: readonly Endpoint[] = [
  endpoint("Transactions", "read", "GET /api/v1/transactions", "listTransactions", {
    summary: "Mints, withdrawals, transfers and deposits of the application, newest first",
    description: "A page can be shorter than `limit` even if there is a next one.",
    ...paged("TransactionPage", transaction),
    query: transactionQuery,
    inTurn: true,
    handle: ({ engine, applicationId, query, ...call }) =>
      examining(call, (options) => engine.transactions.list(applicationId, query, options())),
  }),
  endpoint("Transactions", "read", "GET /api/v1/transactions/{transactionId}", "getTransaction", {
    summary: "One transaction",
    success: json(200, "The transaction.", transaction),
    handle: ({ engine, applicationId, params }) =>
      engine.transactions.get(applicationId, params.transactionId),
  }),
];
