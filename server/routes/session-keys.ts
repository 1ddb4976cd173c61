import type { KeySession } from "../../core/index.ts";
import { revocationCalldata, sessionCalldata } from "../../core/l1/index.ts";
import { sessionTypedData } from "../../core/protocol/index.ts";
import { typedDataToWire } from "../http/wire/typed-data.ts";
import { sessionKey, sessionPreparation, sessionPreparationBody } from "../schemas/session-keys.ts";
import { type Endpoint, endpoint, json } from "./api/endpoint.ts";

const EVERY_ASSET = `0x${"00".repeat(32)}` as const;

export const sessionKeyEndpoints: readonly Endpoint[] = [
  endpoint("Transfers", "transfer", "POST /api/v1/session-keys/prepare", "prepareSessionKey", {
    summary: "What an owner signs so that another key may transfer for it, and the transaction that says so on L1",
    description:
      "Changes nothing. Sign `typedData`, repeat the request with the signature, and send `call` from any account. A key has one session with an owner for ever.",
    body: sessionPreparationBody,
    example: {
      ownerAddress: `0x${"70".repeat(20)}`,
      keyAddress: `0x${"71".repeat(20)}`,
      until: "1893456000",
      limit: "10",
    },
    success: json(200, "What to sign and to send.", sessionPreparation),
    errors: ["asset_not_found"],
    async handle({ engine, applicationId, body }) {
      const { ownerAddress: owner, keyAddress: key, until, limit, assetId, signature } = body;
      const asset = assetId === undefined ? null : await engine.assets.get(applicationId, assetId);
      const session = { owner, key, until, limit, assetType: asset?.assetType ?? EVERY_ASSET };
      const { chainId, contract: to } = engine.settlement;
      const typedData = typedDataToWire(sessionTypedData(engine.settlement, session));
      return { typedData, call: { chainId, to, data: sessionCalldata(session, signature) } };
    },
  }),
  endpoint("Transfers", "read", "GET /api/v1/session-keys/{ownerAddress}/{keyAddress}", "getSessionKey", {
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
        revocation: { chainId, to, data: revocationCalldata({ owner: ownerAddress, key: keyAddress }) },
      };
    },
  }),
];

function statusOf(session: KeySession | null): "none" | "pending" | "active" | "expired" | "revoked" {
  if (session === null) return "none";
  if (session.revokedAt > 0n) return "revoked";
  return session.until < BigInt(Math.floor(Date.now() / 1000)) ? "expired" : session.isFinal ? "active" : "pending";
}
