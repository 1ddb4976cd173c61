import { z } from "zod";
import { type Endpoint, endpoint, paged } from "./api/endpoint.ts";
import { examining } from "./api/examined.ts";
import * as s from "./api/fields.ts";

const deposit = s.responseComponent("Deposit", {
  vaultId: s.outDecimal.describe("The vault that L1 made."),
  userId: s.outUuid,
  ownerAddress: s.outAddress,
  assetId: s.outUuid,
  ...s.outToken,
  mintingBlob: s.outHex,
  tokenId: s.outDecimal.nullable().describe("null for ERC-20."),
  amount: s.outDecimal.describe("Units."),
  amountDecimal: s.outAmountDecimal,
  l1TxHash: s.outHash,
  l1BlockNumber: s.outDecimal.describe("The block is final."),
  createdAt: s.outTime.describe("When the vault became the user's."),
});

const depositQuery = z.strictObject({
  userId: s.uuid.optional(),
  ownerAddress: s.address.optional().describe("Only those of all users of this owner."),
  assetId: s.uuid.optional(),
  vaultId: s.vaultId.optional(),
  ...s.createdBetween,
  ...s.page,
});

export const depositEndpoints: readonly Endpoint[] = [
  endpoint("Deposits", "read", "GET /api/v1/deposits", "listDeposits", {
    summary: "Tokens that came back from L1 to users of the application, newest first",
    description:
      "The owner burns a token by its `enter`, and L1 makes a vault of it. Once that is final, the vault belongs to the user of the owner's address. Before there is one, it waits. A page can be shorter than `limit` even if there is a next one.",
    ...paged("DepositPage", deposit),
    query: depositQuery,
    inTurn: true,
    handle: ({ engine, applicationId, query, ...call }) =>
      examining(call, (options) => engine.deposits.list(applicationId, query, options())),
  }),
];
