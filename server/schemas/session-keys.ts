import { z } from "zod";
import { SESSION_TYPES } from "../../core/protocol/index.ts";
import * as s from "./common.ts";
import { typedDataExample, typedDataOf } from "./withdrawals.ts";

/** A transaction that is ready to be sent. */
const call = z.strictObject({ chainId: s.outDecimal, to: s.outAddress, data: s.outHex });

export const sessionPreparationBody = s.requestComponent("NewSessionKey", {
  ownerAddress: s.address,
  keyAddress: s.address.describe("The account of the session's key, such as one that a game makes."),
  until: s.seconds.describe("The last second of the session, since 1970, as a decimal string."),
  limit: s.amount
    .refine((units) => units > 0n, "Give at least 1.")
    .describe("Most quantized units of one transfer. A transfer of all that is left counts the vault's full amount."),
  assetId: s.uuid.optional().describe("The only asset of the session. Default: every asset of the owner."),
  signature: s.signature.optional().describe("The owner's, over the typed data of this request without it."),
});

const MESSAGE = {
  owner: `0x${"70".repeat(20)}`,
  key: `0x${"71".repeat(20)}`,
  until: "1893456000",
  limit: "10",
  assetType: "0",
};

export const sessionPreparation = s.responseComponent("SessionKeyPreparation", {
  typedData: typedDataOf(["Session"], typedDataExample("Session", SESSION_TYPES, MESSAGE)),
  call: call.describe(
    "The transaction that opens the session. Any account can send it if the request had the owner's signature, so that the owner pays no gas; otherwise only the owner.",
  ),
});

export const sessionKey = s.responseComponent("SessionKey", {
  ownerAddress: s.outAddress,
  keyAddress: s.outAddress,
  status: z
    .enum(["none", "pending", "active", "expired", "revoked"])
    .describe(
      "As the server's clock and the blocks that it has read say. `none`: L1 has told of no session. `pending`: it is not final on L1 yet.",
    ),
  authorizedAt: s.outDecimal.nullable(),
  until: s.outDecimal.nullable(),
  limit: s.outDecimal.nullable().meta({ examples: ["10"] }),
  assetType: s.outHash.nullable().describe("null for every asset, and without a session."),
  revokedAt: s.outDecimal.nullable(),
  revocation: call.describe("The owner's transaction that ends the session."),
});
