import {
  Agent as HttpAgent,
  request as httpRequest,
  type IncomingHttpHeaders,
  type IncomingMessage,
} from "node:http";
import { Agent as HttpsAgent, request as httpsRequest } from "node:https";
import { setTimeout as pause } from "node:timers/promises";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import type { ClusterNode, ClusterRole } from "../../core/cluster/index.ts";
import { MintmarkError } from "../../core/index.ts";
import { handleError } from "../http/errors.ts";

/** The number of the cluster's writes that a response includes, or must include. */
const POSITION = "mintmark-position";
/** The role of the responding server: `leader` or `standby`. */
const ROLE = "mintmark-role";
/**
 * Marks a request forwarded by a standby. It ends a loop of two servers that each take the other
 * for the leader.
 */
const FORWARDED = "mintmark-forwarded-by";
/** Milliseconds that a read waits for its required position. */
const CATCH_UP_MS = 5_000;
/** Milliseconds that a change waits for a server that leads. */
const LEAD_MS = 10_000;
/**
 * Pause between two checks of that server, timeout of each, and time for which its answer holds.
 */
const LOOK_MS = { pause: 100, timeout: 1_000, holds: 250 };
/** Longest silence of the leader, before and within its response. */
const ANSWER_MS = 60_000;
const READS = new Set(["GET", "HEAD", "OPTIONS"]);
/** Errors when an engine, a server or the leader's answer ends. */
const OVER: ReadonlySet<unknown> = new Set(["engine_closed", "shutting_down", "ECONNRESET"]);
/** The server that leads has them. */
const DROPS = "/api/v1/drops";

/**
 * The requests of a cluster's server. A standby answers reads and forwards everything else to the
 * leader. Each response has `Mintmark-Position`; a read that sends it back includes that change, on
 * any server.
 *
 * @param role - of the engine that `app` serves
 */
export async function serveInCluster(
  app: FastifyInstance,
  node: ClusterNode,
  role: ClusterRole["role"],
): Promise<void> {
  const leader = new LeaderOf(node);
  app.addHook("preClose", async () => leader.close());
  app.addHook("onRequest", async (request, reply) => {
    const isRead = READS.has(request.method) && !request.url.startsWith(DROPS);
    if (!request.url.startsWith("/api/") && isRead) return undefined;
    if (node.fault !== null) throw new MintmarkError("journal_unavailable", node.fault);
    if (isRead) {
      await catchUp(request, node);
      return undefined;
    }
    return node.isLeader ? undefined : forward(request, reply, leader);
  });
  app.addHook("onSend", (_, reply, payload, done) => {
    // A forwarded response has the leader's. The app of a standby that has just become the leader
    // serves no changes.
    if (!reply.hasHeader(POSITION))
      reply.header(POSITION, node.position).header(ROLE, node.isLeader ? role : "standby");
    done(null, payload);
  });
}

/**
 * Clients need not know that an engine or an answer has ended: another server leads, or soon does.
 */
export const handleClusterError: typeof handleError = (error, request, reply) => {
  const isOver =
    OVER.has((error as { readonly code?: unknown }).code) && request.routeOptions.url !== "/readyz";
  return handleError(
    isOver ? new MintmarkError("not_leader", undefined, { cause: error }) : error,
    request,
    reply,
  );
};

/** The leader's address, as a standby's changes need it. */
class LeaderOf {
  readonly #node: ClusterNode;
  readonly #agents = {
    "http:": new HttpAgent({ keepAlive: true }),
    "https:": new HttpsAgent({ keepAlive: true }),
  };
  readonly #closing = new AbortController();
  /** The server that answered as the leader, and when that was. */
  #known = { url: "", at: 0 };

  constructor(node: ClusterNode) {
    this.#node = node;
  }

  /** Ends all waits: this server's role changes. */
  close(): void {
    this.#closing.abort();
    for (const agent of Object.values(this.#agents)) agent.destroy();
  }

  /**
   * The address and term of a leader that serves, as soon as there is one. So a takeover delays
   * changes and fails none.
   *
   * @param onSilent - called with the address at which a leader did not answer as such until the
   *   end
   */
  async found(
    onSilent: (url: string) => void,
  ): Promise<{ readonly url: string; readonly term: AbortSignal }> {
    const end = performance.now() + LEAD_MS;
    let silent: string | null = null;
    while (performance.now() < end && !this.#closing.signal.aborted) {
      const { fault, leader, isLeader, term } = this.#node;
      if (fault !== null) throw new MintmarkError("journal_unavailable", fault);
      if (leader !== null && !isLeader) {
        const { url } = leader;
        if (!this.#isKnown(url) && (await leads(url))) this.#known = { url, at: performance.now() };
        if (this.#isKnown(url)) return { url, term };
      }
      silent = leader !== null && !isLeader ? leader.url : null;
      await pause(LOOK_MS.pause, undefined, { signal: this.#closing.signal }).catch(() => {});
    }
    if (silent !== null) onSilent(silent);
    throw new MintmarkError(
      "not_leader",
      "No server leads the cluster now. Repeat the request in a moment.",
    );
  }

  /**
   * The start of the leader's response. Rejects when the leader's term ends before, and breaks off
   * when it ends later.
   */
  ask(
    url: string,
    term: AbortSignal,
    { raw, ip, id }: FastifyRequest,
    reply: FastifyReply,
  ): Promise<IncomingMessage> {
    const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
    const target = new URL(url);
    const { "transfer-encoding": chunked } = raw.headers;
    const isTls = target.protocol === "https:";
    const asked = (isTls ? httpsRequest : httpRequest)(target, {
      method: raw.method,
      path: raw.url,
      agent: this.#agents[isTls ? "https:" : "http:"],
      signal: term,
      headers: {
        ...withoutHops(raw.headers),
        ...(chunked !== undefined && { "transfer-encoding": "chunked" }),
        host: target.host,
        [FORWARDED]: "1",
        "x-forwarded-for": ip,
        "x-request-id": id,
      },
    });
    asked.on("response", resolve).on("error", reject);
    asked.setTimeout(ANSWER_MS, () => asked.destroy(new Error("no answer in time")));
    reply.raw.once("close", () => asked.destroy());
    raw.pipe(asked);
    return promise;
  }

  #isKnown(url: string): boolean {
    return this.#known.url === url && performance.now() - this.#known.at < LOOK_MS.holds;
  }
}

async function leads(url: string): Promise<boolean> {
  const reply = await fetch(new URL("/healthz", url), {
    signal: AbortSignal.timeout(LOOK_MS.timeout),
  }).catch(() => null);
  await reply?.body?.cancel();
  return reply?.headers.get(ROLE) === "leader";
}

async function catchUp(request: FastifyRequest, node: ClusterNode): Promise<void> {
  const asked = request.headers[POSITION];
  if (asked === undefined) return;
  if (typeof asked !== "string" || !/^\d{1,15}$/.test(asked)) {
    throw new MintmarkError(
      "validation_failed",
      "Mintmark-Position: give the value from an earlier response.",
    );
  }
  try {
    await node.reached(Number(asked), AbortSignal.timeout(CATCH_UP_MS));
  } catch {
    throw new MintmarkError(
      "not_leader",
      "This server does not have that change yet. Repeat the request later.",
    );
  }
}

/**
 * Forwards to the leader, body included and unread. A redirect would make the client send its key
 * to another host.
 */
async function forward(
  request: FastifyRequest,
  reply: FastifyReply,
  leader: LeaderOf,
): Promise<FastifyReply> {
  if (request.headers[FORWARDED] !== undefined) throw new MintmarkError("not_leader");
  const { url, term } = await leader.found((url) =>
    request.log.error(
      { leader: url },
      "the leader does not answer there; check MINTMARK_SERVER_URL of the leader",
    ),
  );
  try {
    const answer = await leader.ask(url, term, request, reply);
    return reply
      .code(answer.statusCode ?? 502)
      .headers(withoutHops(answer.headers))
      .send(answer);
  } catch (error) {
    request.log.warn({ err: error, leader: url }, "the leader did not answer");
    const detail =
      "The leader does not answer. Repeat the request in a moment, with the same idempotency key.";
    throw new MintmarkError("not_leader", detail);
  }
}

/** Headers of one connection, which are not sent on. */
const HOPS = [
  "connection",
  "keep-alive",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
  "expect",
];

function withoutHops(headers: IncomingHttpHeaders): IncomingHttpHeaders {
  const named = (headers.connection ?? "").split(",").map((name) => name.trim().toLowerCase());
  const isKept = ([name]: [string, unknown]) =>
    !HOPS.includes(name) && !name.startsWith("proxy-") && !named.includes(name);
  return Object.fromEntries(Object.entries(headers).filter(isKept));
}
