import type { FastifyInstance } from "fastify";
import { z } from "zod";
import { attestationRequestTypedData, type CommitteeMember } from "../../../core/guards/committee/index.ts";
import type { AttesterClient } from "../../../core/guards/mirror/index.ts";
import type { Hex } from "../../../core/index.ts";
import { addressGroup, type Quota, TokenBuckets } from "../../http/access/rate-limit.ts";
import { buildGuardServer, type GuardServerOptions, hash, proposedTerms, readAs } from "./guard.ts";

export interface MemberServerOptions extends GuardServerOptions {
  /** The server does not close it. */
  readonly member: CommitteeMember;
  /** Signs the state for mirrors. Without it the member does not. */
  readonly attester?: AttesterClient;
}

const integer = z
  .string()
  .regex(/^\d{1,19}$/)
  .transform(BigInt);
const terms = proposedTerms.extend({ history: hash, sequence: integer, epoch: integer });

/** A committee member's service, not listening yet; see {@link buildGuardServer}. */
export function buildMemberServer({ member, attester, ...options }: MemberServerOptions): FastifyInstance {
  const { settlement } = member.archive;
  const app = buildGuardServer(
    member,
    {
      name: "attestation",
      terms,
      request: (proposed) => attestationRequestTypedData(settlement, proposed),
      sign: async (proposed, data) => ({ signature: await member.sign({ ...proposed, data }, proposed) }),
    },
    options,
  );
  if (attester !== undefined) addMirrorRoute(app, attester);
  return app;
}

/** Each request makes the member read its chain; a relay asks once a step. */
const QUOTA: Quota = { units: 120, windowSeconds: 60 };

const decimal = z.string().regex(/^(?:0|[1-9]\d{0,18})$/);
const question = z.strictObject({
  chainId: decimal.transform(BigInt),
  contract: z
    .string()
    .regex(/^0x[0-9a-f]{40}$/)
    .transform((text) => text as Hex),
  countValidium: decimal.transform(Number),
  countRollup: decimal.transform(Number),
  epoch: decimal.transform(BigInt),
});

/** A member's signatures for mirrors. Anyone may ask: the member signs only states of the source's final blocks. */
function addMirrorRoute(app: FastifyInstance, attester: AttesterClient): void {
  const quota = new TokenBuckets("mirror-attestations", QUOTA, () => performance.now());
  app.get("/v1/mirrors/:chainId/:contract/attestation", async (request, reply) => {
    quota.spend(addressGroup(request.ip), 1, reply);
    const asked = { ...(request.params as object), ...(request.query as object) };
    const { chainId, contract, epoch, ...counts } = readAs(question, asked);
    return { signature: await attester.attest({ chainId, contract }, counts, epoch) };
  });
}
