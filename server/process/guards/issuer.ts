import { createHash, timingSafeEqual } from "node:crypto";
import type { FastifyInstance, FastifyRequest } from "fastify";
import { z } from "zod";
import { consentRequestTypedData, type Issuer, type LocalMintRecord } from "../../../core/guards/issuer/index.ts";
import { type Hex, MintmarkError } from "../../../core/index.ts";
import { parseJson } from "../../../core/internal.ts";
import { accept } from "../../http/wire/body.ts";
import { countFailures } from "../../routes/api/authentication.ts";
import * as signing from "./guard.ts";

interface IssuerServerOptions extends signing.GuardServerOptions {
  /** The server does not close it. */
  readonly issuer: Issuer;
  /** Accepts the application's mints over HTTP with the secret. Without it there are no record routes. */
  readonly records?: { readonly record: LocalMintRecord; readonly secret: string };
}

type ProposedBatch = signing.Proposed<z.output<typeof signing.proposedTerms>>;

/** Most mints of one request. */
const MAX_MINTS = 10_000;
/** Enough for {@link MAX_MINTS} with the longest ids and blobs. */
const MAX_MINTS_BYTES = 16 * 1024 * 1024;
const address = z
  .string()
  .regex(/^0x[0-9a-fA-F]{40}$/, "Give 0x and 40 hex digits.")
  .transform((text) => text as Hex);
const recorded = z.strictObject({
  mints: z
    .array(
      z
        .strictObject({
          id: z.string(),
          contractAddress: address,
          owner: address,
          amount: z
            .string()
            .regex(/^[1-9]\d{0,77}$/, "Give a whole number of base units as text.")
            .transform(BigInt),
          tokenId: z
            .string()
            .regex(/^(?:0|[1-9]\d{0,77})$/, "Give a decimal id as text.")
            .transform(BigInt)
            .optional(),
          mintingBlob: z.string().optional(),
        })
        .transform(({ contractAddress: token, tokenId, mintingBlob: blob, ...mint }) => ({
          ...mint,
          token,
          ...(tokenId !== undefined && { tokenId }),
          ...(blob !== undefined && { blob }),
        })),
    )
    .min(1)
    .max(MAX_MINTS),
});

/** An issuer's service, not listening yet; see {@link buildGuardServer}. */
export function buildIssuerServer({ issuer, records, ...options }: IssuerServerOptions): FastifyInstance {
  const { settlement } = issuer.archive;
  const app = signing.buildGuardServer(
    issuer,
    {
      name: "consent",
      terms: signing.proposedTerms,
      request: (proposed: ProposedBatch) => consentRequestTypedData(settlement, proposed),
      sign: (proposed: ProposedBatch, data) => issuer.consent({ ...proposed, data }),
    },
    options,
  );
  if (records !== undefined) addRecordRoutes(app, records);
  return app;
}

/** For the application's own backend: it records each mint here before it requests the mint. */
function addRecordRoutes(app: FastifyInstance, { record, secret }: NonNullable<IssuerServerOptions["records"]>): void {
  const failures = signing.failureBuckets();
  const expected = digestOf(`Bearer ${secret}`);
  const requireSecret = async ({ headers: { authorization } }: FastifyRequest) => {
    if (authorization === undefined) throw new MintmarkError("credentials_missing", "Send Authorization: Bearer.");
    if (!timingSafeEqual(digestOf(authorization), expected)) {
      throw new MintmarkError("credentials_invalid", "The secret is not MINTMARK_RECORD_SECRET of this issuer.");
    }
  };
  app.register(async (routes) => {
    routes.addHook("onRequest", (request, reply) => countFailures(requireSecret(request), failures, request, reply));
    accept(routes, "application/json", parseJson);
    routes.post("/v1/mints", { bodyLimit: MAX_MINTS_BYTES }, async ({ body }) => {
      return { recorded: await record.record(signing.readAs(recorded, body).mints) };
    });
    routes.delete<{ Params: { id: string } }>("/v1/mints/:id", async ({ params }, reply) => {
      await record.cancel(params.id);
      return reply.code(204).send();
    });
  });
}

function digestOf(text: string): Buffer {
  return createHash("sha256").update(text).digest();
}
