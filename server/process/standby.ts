import replyFrom from "@fastify/reply-from";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import type { ClusterNode } from "../../core/cluster/index.ts";
import { MintmarkError } from "../../core/index.ts";
import { handleError } from "../http/errors.ts";

/** The number of the cluster's writes that a response includes, or must include. */
const POSITION = "mintmark-position";
/** The role of the responding server: `leader` or `standby`. */
const ROLE = "mintmark-role";
/** Marks a request forwarded by a standby. It ends a loop of two servers that each take the other for the leader. */
const FORWARDED = "mintmark-forwarded-by";
/** Milliseconds that a read waits for its required position. */
const CATCH_UP_MS = 5_000;
/** Timeout for the start of the leader's response. */
const ANSWER_MS = 60_000;
const READS = new Set(["GET", "HEAD", "OPTIONS"]);
/** The server that leads has them. */
const DROPS = "/api/v1/drops";

/**
 * The requests of a cluster's server. A standby answers reads and forwards everything else to the leader. Each response
 * has `Mintmark-Position`; a read that sends it back includes that change, on any server.
 */
export async function serveInCluster(app: FastifyInstance, node: ClusterNode): Promise<void> {
  await app.register(replyFrom, { undici: { headersTimeout: ANSWER_MS, bodyTimeout: 0 } });
  app.addHook("onRequest", async (request, reply) => {
    const isRead = READS.has(request.method) && !request.url.startsWith(DROPS);
    if (!request.url.startsWith("/api/") && isRead) return undefined;
    if (node.fault !== null) throw new MintmarkError("journal_unavailable", node.fault);
    if (isRead) {
      await catchUp(request, node);
      return undefined;
    }
    return node.isLeader ? undefined : forward(request, reply, node);
  });
  app.addHook("onSend", (_, reply, payload, done) => {
    // A forwarded response has the leader's.
    if (!reply.hasHeader(POSITION))
      reply.header(POSITION, node.position).header(ROLE, node.isLeader ? "leader" : "standby");
    done(null, payload);
  });
}

async function catchUp(request: FastifyRequest, node: ClusterNode): Promise<void> {
  const asked = request.headers[POSITION];
  if (asked === undefined) return;
  if (typeof asked !== "string" || !/^\d{1,15}$/.test(asked)) {
    throw new MintmarkError("validation_failed", "Mintmark-Position: give the value from an earlier response.");
  }
  const { signal, ...late } = deadline(CATCH_UP_MS);
  try {
    await node.reached(Number(asked), signal);
  } catch {
    throw new MintmarkError("not_leader", "This server does not have that change yet. Repeat the request later.");
  } finally {
    late.clear();
  }
}

function deadline(ms: number) {
  const controller = new AbortController();
  const timer = setTimeout(() => controller.abort(), ms);
  return { signal: controller.signal, clear: () => clearTimeout(timer) };
}

/** Forwards to the leader, body included and unread. A redirect would make the client send its key to another host. */
function forward(request: FastifyRequest, reply: FastifyReply, node: ClusterNode): FastifyReply {
  const { leader } = node;
  if (leader === null || request.headers[FORWARDED] !== undefined) {
    throw new MintmarkError("not_leader", "No server leads the cluster now. Repeat the request in a moment.");
  }
  if (!READS.has(request.method)) request.body = request.raw;
  return reply.from(request.url, {
    getUpstream: () => leader.url,
    rewriteRequestHeaders: (_, headers) => ({
      ...headers,
      [FORWARDED]: "1",
      "x-forwarded-for": request.ip,
      "x-request-id": request.id,
    }),
    onError: (failed, { error }) => {
      request.log.warn({ err: error, leader: leader.name }, "the leader did not answer");
      const detail = "The leader does not answer. Repeat the request in a moment, with the same idempotency key.";
      handleError(new MintmarkError("not_leader", detail), request, failed as FastifyReply);
    },
  });
}
