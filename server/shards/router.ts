import type { IncomingHttpHeaders } from "node:http";
import replyFrom from "@fastify/reply-from";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { decodeJwt } from "jose";
import type { z } from "zod";
import { MintmarkError } from "../../core/index.ts";
import packageJson from "../../package.json" with { type: "json" };
import { FORM } from "../http/endpoint.ts";
import { handleError, ServerError } from "../http/errors.ts";
import { fastifyApp } from "../http/fastify-app.ts";
import type { LogOptions } from "../operations/log.ts";
import { stopSignal } from "../process/stop-signal.ts";
import { sayHealthy } from "../routes/health.ts";
import type { routerSettings } from "../settings/process-settings.ts";
import { acceptForm } from "../wire/body.ts";
import { findShards, type Shard, type Shards } from "./shard.ts";

/** Options of {@link buildRouter}. */
export interface RouterOptions {
  readonly shards: Shards;
  /** Default: no log. */
  readonly log?: LogOptions;
  /**
   * Further host names without ports, besides `localhost`, addresses and names without a dot; `*` accepts every name.
   */
  readonly hosts?: readonly string[];
}

/** Timeout for receiving a whole request. A shard's own is shorter. */
const ARRIVAL_SECONDS = 120;
/** Timeout for the start of a shard's response. */
const ANSWER_MS = 60_000;
const EVERY_METHOD = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"];

/**
 * One address for many engines. Requests with credentials go to the shard of the key's contract. Public reads, which
 * have none, name the contract in the path: `/shards/{contract}/public/v1/…`. Bodies, responses and event streams pass
 * unchanged. The router stores nothing, so several can run in parallel; list its address among the shards' trusted
 * proxies.
 *
 * @example
 * const app = await buildRouter({ shards: await findShards(["http://10.0.0.7:3000", "http://10.0.0.8:3000"]) });
 */
export async function buildRouter(options: RouterOptions): Promise<FastifyInstance> {
  const { shards, log, hosts = [] } = options;
  const app = fastifyApp({ log, hosts, requestTimeoutSeconds: ARRIVAL_SECONDS, return503OnClosing: false });
  await app.register(replyFrom, { undici: { headersTimeout: ANSWER_MS, bodyTimeout: 0 } });
  await app.register(async (scope) => mountTokens(scope, shards));
  await app.register(async (scope) => mountApi(scope, shards));
  mountHealth(app, shards);
  return app;
}

/** All routes of `/api` and `/shards`. Bodies are streamed unread. */
function mountApi(app: FastifyInstance, shards: Shards): void {
  app.removeAllContentTypeParsers();
  app.addContentTypeParser("*", (_request, payload, done) => done(null, payload));
  app.route({
    method: EVERY_METHOD,
    url: "/api/*",
    handler: (request, reply) => forward(request, reply, shardOf(request.headers, shards)),
  });
  const byContract = new Map([...shards.values()].map((shard) => [shard.contract as string, shard]));
  app.get("/shards", async () => ({ shards: [...byContract.keys()].map((contract) => ({ contract })) }));
  app.get<{ Params: { contract: string } }>("/shards/:contract/public/*", (request, reply) => {
    const shard = byContract.get(request.params.contract.toLowerCase());
    if (shard === undefined) throw new ServerError("route_not_found", "No such shard. GET /shards lists them.");
    // As sent, because a path decoded here could be read differently there.
    const [path = ""] = request.originalUrl.split("?", 1);
    const start = path.indexOf("/public/");
    if (start < 0) throw new ServerError("route_not_found");
    return forward(request, reply, shard, path.slice(start));
  });
  const [first] = shards.values();
  if (first === undefined) throw new Error("no shards");
  // Every shard serves the same API, so any of them can describe it.
  for (const url of ["/openapi.json", "/docs", "/docs/*"]) {
    app.get(url, (request, reply) => forward(request, reply, first));
  }
}

/** Client credentials name their key in the body or in HTTP Basic. The small body is read and forwarded as a form. */
function mountTokens(app: FastifyInstance, shards: Shards): void {
  acceptForm(app);
  app.post("/oauth/token", { bodyLimit: 4096 }, (request, reply) => {
    const fields = Object.entries(request.body ?? {}).filter(([, value]) => typeof value === "string");
    const form = Object.fromEntries(fields) as Readonly<Record<string, string>>;
    const shard =
      request.headers.authorization === undefined
        ? shardOfKeyId(form.client_id, shards)
        : shardOf({ authorization: request.headers.authorization }, shards);
    return forward(request, reply, shard, undefined, new URLSearchParams(form).toString());
  });
}

/** Alive by itself; ready when every shard has a ready server. */
function mountHealth(app: FastifyInstance, shards: Shards): void {
  app.get("/healthz", async (request, reply) => sayHealthy(request, reply, packageJson.version));
  app.get("/readyz", async () => {
    const found = await Promise.all(
      [...shards.values()].map(async ({ urls, contract }) => {
        const ready = await Promise.all(urls.map(isReady));
        return { contract, ready: ready.includes(true) };
      }),
    );
    const issues = found.flatMap(({ contract, ready }) =>
      ready ? [] : [{ pointer: `/shards/${contract}`, code: "not_ready" as const, detail: "The shard is not ready." }],
    );
    if (issues.length > 0) throw new ServerError("not_ready", undefined, { issues });
    return { status: "Ready", checks: Object.fromEntries(found.map(({ contract }) => [contract, "ready"])) };
  });
}

async function isReady(url: string): Promise<boolean> {
  const reply = await fetch(new URL("/readyz", url), { signal: AbortSignal.timeout(5_000) }).catch(() => null);
  await reply?.body?.cancel();
  return reply?.ok === true;
}

/** Forwards the request to the shard; `form` replaces a body that was read here. */
function forward(request: FastifyRequest, reply: FastifyReply, shard: Shard, path?: string, form?: string) {
  const { url } = shard;
  return reply.from(path, {
    getUpstream: () => url,
    // The caller's claim of its address is not trusted, but the shard trusts this router's.
    rewriteRequestHeaders: (_request, headers) => ({
      ...headers,
      "x-forwarded-for": request.ip,
      "x-request-id": request.id,
    }),
    ...(form !== undefined && { body: form, contentType: FORM }),
    onError: (failed, { error }) => {
      shard.failed(url);
      request.log.error({ err: error, contract: shard.contract, url }, "shard did not answer");
      handleError(unanswered(), request, failed as FastifyReply);
    },
  });
}

function unanswered(): MintmarkError | ServerError {
  return new ServerError("not_ready", "The application's shard does not answer. Repeat with the same idempotency key.");
}

const KEY = /^mm_(?:test|live)_([0-9a-f]{16})_/;
const TAG_DIGITS = 4;

/**
 * The shard that must check these credentials. This checks nothing: a forged key or token leads to a shard that refuses
 * it. Throws `credentials_missing` without any, `credentials_invalid` when they lead to none or to two shards.
 */
function shardOf(headers: IncomingHttpHeaders, shards: Shards): Shard {
  const key = headers["x-api-key"];
  const { authorization } = headers;
  if (key === undefined && authorization === undefined) throw new MintmarkError("credentials_missing");
  const byKey = key === undefined ? null : shardOfKeyId(KEY.exec(String(key))?.[1], shards);
  const byToken = authorization === undefined ? null : shardOfKeyId(clientOf(authorization), shards);
  if (byKey !== null && byToken !== null && byKey !== byToken) {
    throw new MintmarkError("credentials_invalid", "X-Api-Key and Authorization name different applications.");
  }
  return (byKey ?? byToken) as Shard;
}

/** Throws `credentials_invalid` when the key belongs to no shard. */
function shardOfKeyId(keyId: string | undefined, shards: Shards): Shard {
  const shard = shards.get(keyId?.slice(0, TAG_DIGITS) ?? "");
  if (shard === undefined) throw new MintmarkError("credentials_invalid");
  return shard;
}

/** The key id in a bearer token or HTTP Basic credentials. */
function clientOf(authorization: string): string | undefined {
  const [, scheme = "", credentials = ""] = /^(Bearer|Basic) +(\S+)$/i.exec(authorization) ?? [];
  if (scheme.toLowerCase() === "basic") return Buffer.from(credentials, "base64").toString("latin1").split(":", 1)[0];
  try {
    const { client_id: clientId } = decodeJwt(credentials);
    return typeof clientId === "string" ? clientId : undefined;
  } catch {
    return undefined;
  }
}

/** The router as a process, until SIGINT or SIGTERM. It stores nothing, so it can stop at any time. */
export async function serveRouter(settings: z.output<typeof routerSettings>): Promise<void> {
  const { MINTMARK_SHARDS: urls, MINTMARK_HOST: host, MINTMARK_PORT: port } = settings;
  const hosts = [...settings.MINTMARK_HOSTS, host];
  const router = await buildRouter({ shards: await findShards(urls), hosts, log: { level: "info" } });
  await router.listen({ host, port });
  await stopSignal();
  await router.close();
}
