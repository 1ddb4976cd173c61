import type { FastifyInstance } from "fastify";
import { z } from "zod";
import type { AttesterClient } from "../../../core/guards/mirror/index.ts";
import { type Hex, MintmarkError } from "../../../core/index.ts";
import { addressGroup, type Quota, TokenBuckets } from "../../http/access/rate-limit.ts";

/** Each request makes the member read its chain; a relay asks once a step. */
const QUOTA: Quota = { units: 120, windowSeconds: 60 };

const integer = z.string().regex(/^(?:0|[1-9]\d{0,18})$/);
const question = z.strictObject({
  chainId: integer.transform(BigInt),
  contract: z
    .string()
    .regex(/^0x[0-9a-f]{40}$/)
    .transform((text) => text as Hex),
  countValidium: integer.transform(Number),
  countRollup: integer.transform(Number),
  epoch: integer.transform(BigInt),
});

/** A member's signatures for mirrors. Anyone may ask: the member signs only states of the source's final blocks. */
export function addMirrorRoute(app: FastifyInstance, attester: AttesterClient): void {
  const quota = new TokenBuckets("mirror-attestations", QUOTA, () => performance.now());
  app.get("/v1/mirrors/:chainId/:contract/attestation", async (request, reply) => {
    quota.spend(addressGroup(request.ip), 1, reply);
    const asked = question.safeParse({ ...(request.params as object), ...(request.query as object) });
    if (!asked.success) throw new MintmarkError("validation_failed", z.prettifyError(asked.error));
    const { chainId, contract, epoch, ...counts } = asked.data;
    return { signature: await attester.attest({ chainId, contract }, counts, epoch) };
  });
}
