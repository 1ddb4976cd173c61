import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { z } from "zod";
import type { Watcher } from "../../core/archive/index.ts";
import {
  type CommitteeMember,
  CommitteeRefusal,
  type RefusalReason,
  requestSigner,
} from "../../core/committee/index.ts";
import { type Hex, type L1Reader, MintmarkError, MODES, type SealedBatch } from "../../core/index.ts";
import type { AttesterClient } from "../../core/mirror/index.ts";
import { countFailures } from "../access/authentication.ts";
import { DEFAULT_RATE_LIMITS, TokenBuckets } from "../access/rate-limit.ts";
import { handleError } from "../http/errors.ts";
import { fastifyApp } from "../http/fastify-app.ts";
import type { LogOptions } from "../operations/log.ts";
import { OutgoingBatches } from "../wire/batch-data.ts";
import { addMirrorRoute } from "./mirrors.ts";

export interface MemberServerOptions {
  /** The server does not close it. */
  readonly member: CommitteeMember;
  readonly l1: Pick<L1Reader, "isOperator">;
  /** What keeps the member's archive in step with L1; its state is shown. */
  readonly watcher: Pick<Watcher, "lastError">;
  /** Vouches for the state on other chains. Without it the member does not. */
  readonly attester?: AttesterClient;
  /** Default: no log. */
  readonly log?: LogOptions;
  /** Names that requests may call this server by, without ports, besides `localhost`, addresses and names without a dot; `*` takes every name. */
  readonly hosts?: readonly string[];
  /** Most bytes of a batch's data; default 64 MiB, ten times a batch of 65,536 vaults with short blobs and more. */
  readonly maxDataBytes?: number;
  /** Bytes of different batches that may be on their way to clients at once; default 256 MiB. */
  readonly maxOutgoingBytes?: number;
  /** Longest time for a whole request to arrive, in seconds. Default 120. */
  readonly requestTimeoutSeconds?: number;
}

const BATCH_ID = /^(validium|zk-rollup)-(0|[1-9]\d{0,9})$/;
const AUTHORIZATION = /^Operator (0x[0-9a-fA-F]{130})$/;
const hash = z
  .string()
  .regex(/^0x[0-9a-f]{64}$/, "Give 32 bytes of lower-case hex.")
  .transform((text) => text as Hex);
const claim = z.strictObject({
  batchRoot: hash,
  vaultCount: z
    .string()
    .regex(/^[1-9]\d{0,6}$/)
    .transform(Number),
  dataHash: hash,
  epoch: z
    .string()
    .regex(/^\d{1,19}$/)
    .transform(BigInt),
});

/** What is claimed of a batch, and the epoch to sign it for. */
type Claim = Omit<SealedBatch, "data"> & { readonly epoch: bigint };

declare module "fastify" {
  interface FastifyRequest {
    /** What the operator's signature covers; null on other routes. */
    claim: Claim | null;
  }
}

/**
 * A committee member as a service, without listening: anyone may read its status and the data of any batch; only an account that holds
 * the contract's operator role can have it sign, which is checked before the body is read.
 */
export function buildMemberServer(options: MemberServerOptions): FastifyInstance {
  const { member, l1, watcher, attester, log, maxDataBytes = 64 * 1024 * 1024, requestTimeoutSeconds = 120 } = options;
  const { maxOutgoingBytes, hosts = [] } = options;
  const failures = new TokenBuckets("failed-authentication", DEFAULT_RATE_LIMITS.failedAuthentication, () =>
    performance.now(),
  );
  const outgoing = new OutgoingBatches(async (mode, batchNumber) => {
    const data = await (mode === "validium" ? member.data(batchNumber) : member.archive.data(mode, batchNumber));
    if (data === null) throw new MintmarkError("batch_not_found");
    return data;
  }, maxOutgoingBytes);
  const errorHandler: typeof handleError = (error, request, reply) => {
    if (error instanceof CommitteeRefusal) return sendRefusal(error, request, reply);
    return handleError(error, request, reply);
  };
  const app = fastifyApp({ log, hosts, requestTimeoutSeconds, bodyLimit: maxDataBytes, errorHandler });
  app.decorateRequest("claim", null);
  app.removeAllContentTypeParsers();
  app.addContentTypeParser("application/octet-stream", { parseAs: "buffer" }, async (_: unknown, body: Buffer) => body);

  app.get("/healthz", async () => ({ status: "Healthy" }));

  app.get("/v1/status", async () => {
    const { settlement, position } = member.archive;
    return {
      address: member.address,
      chainId: settlement.chainId.toString(),
      contract: settlement.contract,
      nextBatch: await member.nextBatch(),
      l1Block: position === null ? null : position.block.toString(),
      missingBatches: (await member.archive.missing()).map(({ mode, batchNumber }) => `${mode}-${batchNumber}`),
      // What is wrong, the log says: it may name the RPC.
      inStepWithL1: position !== null && watcher.lastError === null,
    };
  });

  app.get<{ Params: { batchId: string } }>("/public/v1/batches/:batchId/data", async ({ params }, reply) => {
    const { mode, batchNumber } = batchOf(params.batchId);
    const data = await outgoing.data(mode, batchNumber, reply.raw);
    reply.type("application/octet-stream");
    return data;
  });

  app.post<{ Params: { batchId: string } }>("/v1/batches/:batchId/attestation", {
    async onRequest(request, reply) {
      request.claim = claimOf(request);
      await countFailures(requireOperator(request, request.claim), failures, request, reply);
    },
    async handler({ claim, body }) {
      if (claim === null || !Buffer.isBuffer(body))
        throw new MintmarkError("validation_failed", "Send the batch's data.");
      return { signature: await member.sign({ ...claim, data: body }, claim.epoch) };
    },
  });

  if (attester !== undefined) addMirrorRoute(app, attester);

  /** Rejects unless the request carries the signature of an account that may commit batches now. */
  async function requireOperator({ headers }: FastifyRequest, claimed: Claim): Promise<void> {
    if (headers.authorization === undefined)
      throw new MintmarkError("credentials_missing", "Send Authorization: Operator.");
    const signature = AUTHORIZATION.exec(headers.authorization)?.[1];
    if (signature === undefined) throw new MintmarkError("credentials_invalid", "Authorization must be: Operator 0x….");
    const signer = await requestSigner(member.archive.settlement, claimed, signature as Hex);
    if (!(await l1.isOperator(signer))) {
      throw new MintmarkError("credentials_invalid", `${signer} does not hold the contract's operator role.`);
    }
  }

  return app;
}

function claimOf({ params, query }: FastifyRequest): Claim {
  const place = batchOf((params as { batchId: string }).batchId);
  const parsed = claim.safeParse(query);
  if (!parsed.success) throw new MintmarkError("validation_failed", z.prettifyError(parsed.error));
  return { ...place, ...parsed.data };
}

function batchOf(batchId: string) {
  const [, mode, number] = BATCH_ID.exec(batchId) ?? [];
  const known = MODES.find((name) => name === mode);
  if (known === undefined || Number(number) >= 2 ** 32) throw new MintmarkError("batch_not_found");
  return { mode: known, batchNumber: Number(number) };
}

/** The member has, or lacks, other batches; everything else is the batch's own fault. */
const CONFLICTS: ReadonlySet<RefusalReason> = new Set(["equivocation", "gap", "ahead"]);

/** Answers a refusal as problem details (RFC 9457) whose code is the reason. */
function sendRefusal({ reason, message }: CommitteeRefusal, request: FastifyRequest, reply: FastifyReply) {
  const status = CONFLICTS.has(reason) ? 409 : 422;
  request.log.warn({ reason, detail: message }, "batch refused");
  const problem = {
    type: `urn:mintmark:refusal:${reason}`,
    title: "The committee member does not sign this batch.",
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
