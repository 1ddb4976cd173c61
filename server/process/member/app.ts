import type { FastifyInstance } from "fastify";
import { z } from "zod";
import { attestationRequestTypedData, type CommitteeMember } from "../../../core/guards/committee/index.ts";
import type { AttesterClient } from "../../../core/guards/mirror/index.ts";
import { addMirrorRoute } from "./mirrors.ts";
import { buildSignerServer, claimFields, type SignerServerOptions, statusOf } from "./signer.ts";

export interface MemberServerOptions extends SignerServerOptions {
  /** The server does not close it. */
  readonly member: CommitteeMember;
  /** Signs the state for mirrors. Without it the member does not. */
  readonly attester?: AttesterClient;
}

const integer = z
  .string()
  .regex(/^\d{1,19}$/)
  .transform(BigInt);
const claim = z.strictObject({
  batchRoot: claimFields.hash,
  vaultCount: claimFields.vaultCount,
  dataHash: claimFields.hash,
  history: claimFields.hash,
  sequence: integer,
  epoch: integer,
});

/** A committee member's service, not listening yet; see {@link buildSignerServer}. */
export function buildMemberServer({ member, attester, ...options }: MemberServerOptions): FastifyInstance {
  const { settlement } = member.archive;
  const app = buildSignerServer(
    member,
    {
      name: "attestation",
      claim,
      request: (claimed) => attestationRequestTypedData(settlement, claimed),
      sign: async (claimed, data) => ({ signature: await member.sign({ ...claimed, data }, claimed) }),
    },
    options,
  );
  app.get("/v1/status", async () => ({
    ...(await statusOf(member, options)),
    nextBatch: await member.nextBatch(),
  }));
  if (attester !== undefined) addMirrorRoute(app, attester);
  return app;
}
