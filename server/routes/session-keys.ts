import { z } from "zod";
import type { KeySession } from "../../core/index.ts";
import { revocationCalldata, sessionCalldata } from "../../core/l1/index.ts";
import { SESSION_TYPES, sessionTypedData } from "../../core/protocol/index.ts";
import { paidBy } from "../http/access/rate-account.ts";
import { invalid } from "../http/errors.ts";
import { type Endpoint, endpoint, json } from "./api/endpoint.ts";
import * as s from "./api/fields.ts";
import { typedDataOf, typedDataToWire } from "./typed-data.ts";

const call = z.strictObject({ chainId: s.outDecimal, to: s.outAddress, data: s.outHex });

const sessionPreparationBody = s.requestComponent("NewSessionKey", {
  ownerAddress: s.address,
  keyAddress: s.address.describe(
    "The account of the session's key, such as one that a game makes.",
  ),
  until: s.seconds.describe("The last second of the session, since 1970, as a decimal string."),
  limit: s.positive.describe(
    "Most quantized units of one transfer. A transfer of all that is left counts the vault's full amount.",
  ),
  assetId: s.uuid
    .optional()
    .describe("The only asset of the session. Default: every asset of the owner."),
  signature: s.signature
    .optional()
    .describe("The owner's, over the typed data of this request without it."),
});

const MESSAGE = {
  owner: `0x${"70".repeat(20)}`,
  key: `0x${"71".repeat(20)}`,
  until: "1893456000",
  limit: "10",
  assetType: "0",
};

const sessionPreparation = s.responseComponent("SessionKeyPreparation", {
  typedData: typedDataOf(["Session"], SESSION_TYPES, MESSAGE),
  call: call.describe(
    "The transaction that opens the session. Any account can send it if the request had the owner's signature, so that the owner pays no gas; otherwise only the owner.",
  ),
});

const sessionKey = s.responseComponent("SessionKey", {
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

const EVERY_ASSET = `0x${"00".repeat(32)}` as const;

export const sessionKeyEndpoints: readonly Endpoint[] = [
  endpoint("Transfers", "transfer", "POST /api/v1/session-keys/prepare", "prepareSessionKey", {
    summary:
      "What an owner signs so that another key may transfer for it, and the transaction that says so on L1",
    description:
      "Changes nothing. Sign `typedData`, repeat the request with the signature, and send `call` from any account. A key has one session with an owner for ever.",
    body: sessionPreparationBody,
    example: {
      ownerAddress: MESSAGE.owner,
      keyAddress: MESSAGE.key,
      until: MESSAGE.until,
      limit: MESSAGE.limit,
    },
    success: json(200, "What to sign and to send.", sessionPreparation),
    errors: ["asset_not_found", "signature_invalid", "l1_failed"],
    async handle({ engine, applicationId, body, request }) {
      const { ownerAddress: owner, keyAddress: key, until, limit, assetId, signature } = body;
      requireAhead(until);
      if ((await engine.transfers.session(owner, key)) !== null) throw invalid("/keyAddress", USED);
      const asset = assetId === undefined ? null : await engine.assets.get(applicationId, assetId);
      const session = { owner, key, until, limit, assetType: asset?.assetType ?? EVERY_ASSET };
      const { chainId, contract: to } = engine.settlement;
      const typedData = typedDataToWire(sessionTypedData(engine.settlement, session));
      const taken =
        signature && (await engine.transfers.signedSession(session, signature, paidBy(request)));
      return { typedData, call: { chainId, to, data: sessionCalldata(session, taken) } };
    },
  }),
  endpoint(
    "Transfers",
    "read",
    "GET /api/v1/session-keys/{ownerAddress}/{keyAddress}",
    "getSessionKey",
    {
      summary: "The session of an owner with a key, as L1 tells it",
      success: json(200, "The session, or `none`.", sessionKey),
      async handle({ engine, params: { ownerAddress, keyAddress } }) {
        const session = await engine.transfers.session(ownerAddress, keyAddress);
        const { chainId, contract: to } = engine.settlement;
        const isOpen = session !== null && session.authorizedAt > 0n;
        return {
          ownerAddress,
          keyAddress,
          status: statusOf(session),
          authorizedAt: isOpen ? session.authorizedAt : null,
          until: isOpen ? session.until : null,
          limit: isOpen ? session.limit : null,
          assetType: isOpen && session.assetType !== EVERY_ASSET ? session.assetType : null,
          revokedAt: session === null || session.revokedAt === 0n ? null : session.revokedAt,
          revocation: {
            chainId,
            to,
            data: revocationCalldata({ owner: ownerAddress, key: keyAddress }),
          },
        };
      },
    },
  ),
];

const USED = "The owner has used this key for a session before. Make a new key.";

/** L1 refuses a session that has ended. */
function requireAhead(until: bigint): void {
  const now = secondsNow();
  if (until <= now)
    throw invalid("/until", `The session would be over. Give a time in seconds after ${now}.`);
}

function secondsNow(): bigint {
  return BigInt(Math.floor(Date.now() / 1000));
}

function statusOf(
  session: KeySession | null,
): "none" | "pending" | "active" | "expired" | "revoked" {
  if (session === null) return "none";
  if (session.revokedAt > 0n) return "revoked";
  return session.until < secondsNow() ? "expired" : session.isFinal ? "active" : "pending";
}
