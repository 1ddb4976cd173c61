import { createHash, timingSafeEqual } from "node:crypto";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import type { TypedDataDefinition } from "viem";
import { z } from "zod";
import type { Watcher } from "../../core/archive/index.ts";
import {
  attestationRequestTypedData,
  type CommitteeMember,
  Refusal,
  type RefusalReason,
  requestSigner,
} from "../../core/committee/index.ts";
import { type Hex, type L1Reader, MintmarkError, type Mode } from "../../core/index.ts";
import { parseJson } from "../../core/internal.ts";
import {
  consentRequestTypedData,
  type Issuer,
  type LocalMintRecord,
} from "../../core/issuer/index.ts";
import type { AttesterClient } from "../../core/mirror/index.ts";
import { DEFAULT_RATE_LIMITS, type Quota, TokenBuckets } from "../http/access/rate-limit.ts";
import { addressGroup } from "../http/address.ts";
import { handleError, ServerError } from "../http/errors.ts";
import { fastifyApp } from "../http/fastify-app.ts";
import type { LogOptions } from "../http/log.ts";
import { outgoingBatches } from "../http/wire/batch-data.ts";
import { accept } from "../http/wire/body.ts";
import { countFailures } from "../routes/api/authentication.ts";
import { batchOf } from "../routes/batches.ts";
import { sayHealthy } from "../routes/service.ts";
import type { SignerMetrics } from "./metrics.ts";

/**
 * A service that checks batches and signs them: a committee member, which takes them in order, or
 * an issuer.
 */
export type BatchSigner = Pick<Issuer, "address" | "archive" | "data"> &
  Partial<Pick<CommitteeMember, "nextBatch">>;

/** Over ten times the data of 65,536 vaults with short minting blobs. */
const MAX_DATA_BYTES = 64 * 1024 * 1024;

export interface SignerServerOptions {
  readonly l1: Pick<L1Reader, "isOperator">;
  /** Keeps the signer's archive up to date with L1; the status shows its state. */
  readonly watcher: Pick<Watcher, "lastError">;
  /** Default: no log. */
  readonly log?: LogOptions;
  /**
   * Host names without ports, besides `localhost`, addresses and names without a dot; `*` accepts
   * every name.
   */
  readonly hosts?: readonly string[];
  readonly metrics?: SignerMetrics;
  /** Most bytes of different batches on their way to clients; default 256 MiB. */
  readonly maxOutgoingBytes?: number;
}

/** One kind of signature that operators request. */
interface Signing<Terms extends object> {
  /** The end of its path, after the batch. */
  readonly name: string;
  /** The terms of the batch in the query. */
  readonly terms: z.ZodType<Terms>;
  /** The typed data that the operator signs for a request. */
  request(proposed: Proposed<Terms>): TypedDataDefinition;
  /** The response, with the signature. */
  sign(proposed: Proposed<Terms>, data: Uint8Array): Promise<{ readonly signature: Hex }>;
}

/** A batch that the operator asks to have signed: its identity, and what the query says of it. */
type Proposed<Terms> = Terms & { readonly mode: Mode; readonly batchNumber: number };

const AUTHORIZATION = /^Operator (0x[0-9a-fA-F]{128,130})$/;

const text = (form: RegExp, detail?: string) => z.string().regex(form, detail);
const hex = (form: RegExp, detail?: string) =>
  text(form, detail).transform((given) => given as Hex);
const hash = hex(/^0x[0-9a-f]{64}$/, "Give 32 bytes of lower-case hex.");

const proposedTerms = z.strictObject({
  batchRoot: hash,
  vaultCount: text(/^[1-9]\d{0,6}$/).transform(Number),
  dataHash: hash,
});

/**
 * A signer's service, not listening yet. Anyone may read its state and the data of any batch. Only
 * an account with the contract's operator role can request signatures, checked before reading the
 * body.
 */
function buildSignerServer<Terms extends object>(
  signer: BatchSigner,
  signing: Signing<Terms>,
  options: SignerServerOptions,
): FastifyInstance {
  const { l1, watcher, log, hosts = [], metrics } = options;
  const { archive } = signer;
  const failures = new TokenBuckets(
    "failed-authentication",
    DEFAULT_RATE_LIMITS.failedAuthentication,
  );
  const batchData = outgoingBatches(async (mode, batchNumber) => {
    const data = await signer.data(mode, batchNumber);
    if (data === null) throw new MintmarkError("batch_not_found");
    return data;
  }, options.maxOutgoingBytes);
  const errorHandler: typeof handleError = (error, request, reply) => {
    if (!(error instanceof Refusal)) return handleError(error, request, reply);
    metrics?.answered(error.reason);
    return sendRefusal(error, request, reply);
  };
  const app = fastifyApp({
    log,
    hosts,
    requestTimeoutSeconds: 120,
    bodyLimit: MAX_DATA_BYTES,
    errorHandler,
  });
  app.removeAllContentTypeParsers();
  accept(app, "application/octet-stream", (body) => body);

  const isInStep = () => archive.position !== null && watcher.lastError === null;

  app.get("/healthz", sayHealthy);

  app.get("/readyz", async () => {
    if (!isInStep()) {
      const detail = "the archive is not up to date with L1; the log has the reason";
      const issues = [{ pointer: "/checks/archive", code: "not_ready" as const, detail }];
      throw new ServerError("not_ready", undefined, { issues });
    }
    return { status: "Ready" };
  });

  app.get("/v1/status", async () => {
    const { settlement, position } = archive;
    return {
      address: signer.address,
      chainId: settlement.chainId.toString(),
      contract: settlement.contract,
      l1Block: position === null ? null : position.block.toString(),
      missingBatches: (await archive.missing()).map(
        ({ mode, batchNumber }) => `${mode}-${batchNumber}`,
      ),
      // The reason is only in the log: it may name the RPC.
      inStepWithL1: isInStep(),
      ...(signer.nextBatch && { nextBatch: await signer.nextBatch() }),
    };
  });

  app.get<{ Params: { batchId: string } }>(
    "/public/v1/batches/:batchId/data",
    async ({ params }, reply) => {
      const data = await batchData(...batchOf(params.batchId), reply.raw);
      reply.type("application/octet-stream");
      return data;
    },
  );

  const proposedIn = ({ params, query }: FastifyRequest): Proposed<Terms> => {
    const [mode, batchNumber] = batchOf((params as { batchId: string }).batchId);
    return { ...readAs(signing.terms, query), mode, batchNumber };
  };

  app.post(`/v1/batches/:batchId/${signing.name}`, {
    async onRequest(request, reply) {
      const asked = signing.request(proposedIn(request));
      await countFailures(requireOperator(request, asked), failures, request, reply);
    },
    async handler(request) {
      if (!Buffer.isBuffer(request.body))
        throw new MintmarkError("validation_failed", "Send the batch's data.");
      const signed = await signing.sign(proposedIn(request), request.body);
      metrics?.answered("signed");
      return signed;
    },
  });

  /** Rejects unless an account that may commit batches now has signed the request. */
  async function requireOperator(
    { headers }: FastifyRequest,
    asked: TypedDataDefinition,
  ): Promise<void> {
    if (headers.authorization === undefined)
      throw new MintmarkError("credentials_missing", "Send Authorization: Operator.");
    const signature = AUTHORIZATION.exec(headers.authorization)?.[1];
    if (signature === undefined)
      throw new MintmarkError("credentials_invalid", "Authorization must be: Operator 0x….");
    const operator = await requestSigner(asked, signature as Hex);
    if (!(await l1.isOperator(operator))) {
      throw new MintmarkError(
        "credentials_invalid",
        `${operator} does not have the contract's operator role.`,
      );
    }
  }

  return app;
}

function readAs<T>(form: z.ZodType<T>, given: unknown): T {
  const parsed = form.safeParse(given);
  if (!parsed.success) throw new MintmarkError("validation_failed", z.prettifyError(parsed.error));
  return parsed.data;
}

/**
 * The signer has other batches, lacks some, or sees another history. All other reasons are faults
 * of the batch.
 */
const CONFLICTS = new Set<RefusalReason>([
  "behind",
  "diverged",
  "equivocation",
  "gap",
  "ahead",
  "committed",
]);

/** Sends a refusal as problem details (RFC 9457), with its reason as the code. */
function sendRefusal({ reason, message }: Refusal, request: FastifyRequest, reply: FastifyReply) {
  const status = CONFLICTS.has(reason) ? 409 : 422;
  request.log.warn({ reason, detail: message }, "batch refused");
  const problem = {
    type: `urn:mintmark:refusal:${reason}`,
    title: "This signer refuses the batch.",
    status,
    code: reason,
    detail: message,
    requestId: request.id,
  };
  return reply
    .code(status)
    .type("application/problem+json")
    .send(Buffer.from(JSON.stringify(problem)));
}

interface MemberServerOptions extends SignerServerOptions {
  /** The server does not close it. */
  readonly member: CommitteeMember;
  /** Signs the state for mirrors. Without it the member does not. */
  readonly attester?: AttesterClient;
}

const integer = text(/^\d{1,19}$/).transform(BigInt);
const terms = proposedTerms.extend({ history: hash, sequence: integer, epoch: integer });

/** A committee member's service, not listening yet; see {@link buildSignerServer}. */
export function buildMemberServer({
  member,
  attester,
  ...options
}: MemberServerOptions): FastifyInstance {
  const { settlement } = member.archive;
  const app = buildSignerServer(
    member,
    {
      name: "attestation",
      terms,
      request: (proposed) => attestationRequestTypedData(settlement, proposed),
      sign: async (proposed, data) => ({
        signature: await member.sign({ ...proposed, data }, proposed),
      }),
    },
    options,
  );
  if (attester !== undefined) addMirrorRoute(app, attester);
  return app;
}

/** Each request makes the member read its chain; a relay asks once a step. */
const QUOTA: Quota = { units: 120, windowSeconds: 60 };

const decimal = text(/^(?:0|[1-9]\d{0,18})$/);
const question = z.strictObject({
  chainId: decimal.transform(BigInt),
  contract: hex(/^0x[0-9a-f]{40}$/),
  countValidium: decimal.transform(Number),
  countRollup: decimal.transform(Number),
  epoch: decimal.transform(BigInt),
});

/**
 * A member's signatures for mirrors. Anyone may ask: the member signs only states of the source's
 * final blocks.
 */
function addMirrorRoute(app: FastifyInstance, attester: AttesterClient): void {
  const quota = new TokenBuckets("mirror-attestations", QUOTA);
  app.get("/v1/mirrors/:chainId/:contract/attestation", async (request, reply) => {
    quota.spend(addressGroup(request.ip), 1, reply);
    const asked = { ...(request.params as object), ...(request.query as object) };
    const { chainId, contract, epoch, ...counts } = readAs(question, asked);
    return { signature: await attester.attest({ chainId, contract }, counts, epoch) };
  });
}

interface IssuerServerOptions extends SignerServerOptions {
  /** The server does not close it. */
  readonly issuer: Issuer;
  /**
   * Accepts the application's mints over HTTP with the secret. Without it there are no record
   * routes.
   */
  readonly records?: { readonly record: LocalMintRecord; readonly secret: string };
}

const MAX_MINTS = 10_000;
/** Enough for {@link MAX_MINTS} with the longest ids and minting blobs. */
const MAX_MINTS_BYTES = 16 * 1024 * 1024;
const address = hex(/^0x[0-9a-fA-F]{40}$/, "Give 0x and 40 hex digits.");
const recorded = z.strictObject({
  mints: z
    .array(
      z
        .strictObject({
          id: z.string(),
          contractAddress: address,
          owner: address,
          amount: text(/^[1-9]\d{0,77}$/, "Give a whole number of base units as text.").transform(
            BigInt,
          ),
          tokenId: text(/^(?:0|[1-9]\d{0,77})$/, "Give a decimal id as text.")
            .transform(BigInt)
            .optional(),
          mintingBlob: z.string().optional(),
        })
        .transform(({ contractAddress: token, tokenId, mintingBlob, ...mint }) => ({
          ...mint,
          token,
          ...(tokenId !== undefined && { tokenId }),
          ...(mintingBlob !== undefined && { mintingBlob }),
        })),
    )
    .min(1)
    .max(MAX_MINTS),
});

/** An issuer's service, not listening yet; see {@link buildSignerServer}. */
export function buildIssuerServer({
  issuer,
  records,
  ...options
}: IssuerServerOptions): FastifyInstance {
  const { settlement } = issuer.archive;
  const app = buildSignerServer(
    issuer,
    {
      name: "consent",
      terms: proposedTerms,
      request: (proposed) => consentRequestTypedData(settlement, proposed),
      sign: (proposed, data) => issuer.consent({ ...proposed, data }),
    },
    options,
  );
  if (records !== undefined) addRecordRoutes(app, records);
  return app;
}

/**
 * Routes of the application's own backend: it records each mint here before it requests the mint.
 */
function addRecordRoutes(
  app: FastifyInstance,
  { record, secret }: NonNullable<IssuerServerOptions["records"]>,
): void {
  const failures = new TokenBuckets(
    "failed-authentication",
    DEFAULT_RATE_LIMITS.failedAuthentication,
  );
  const expected = digestOf(`Bearer ${secret}`);
  const requireSecret = async ({ headers: { authorization } }: FastifyRequest) => {
    if (authorization === undefined)
      throw new MintmarkError("credentials_missing", "Send Authorization: Bearer.");
    if (!timingSafeEqual(digestOf(authorization), expected)) {
      throw new MintmarkError(
        "credentials_invalid",
        "The secret is not MINTMARK_RECORD_SECRET of this issuer.",
      );
    }
  };
  app.register(async (routes) => {
    routes.addHook("onRequest", (request, reply) =>
      countFailures(requireSecret(request), failures, request, reply),
    );
    accept(routes, "application/json", parseJson);
    routes.post("/v1/mints", { bodyLimit: MAX_MINTS_BYTES }, async ({ body }) => {
      return { recorded: await record.record(readAs(recorded, body).mints) };
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
