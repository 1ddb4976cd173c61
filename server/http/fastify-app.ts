import type { IncomingMessage, ServerResponse } from "node:http";
import { isIP, type Socket } from "node:net";
import type { Duplex } from "node:stream";
import Fastify, { type FastifyInstance, type FastifyServerOptions } from "fastify";
import { timeUuid } from "../../core/internal.ts";
import { forwardedAddresses } from "./address.ts";
import { answer, boundConnections, boundPieces } from "./connections.ts";
import {
  handleError,
  notFoundHandler,
  problem,
  ServerError,
  type ServerErrorCode,
} from "./errors.ts";
import { type LogOptions, logging } from "./log.ts";

const STALLED_MS = 10_000;

interface AppOptions
  extends Pick<
    FastifyServerOptions,
    "bodyLimit" | "trustProxy" | "return503OnClosing" | "forceCloseConnections"
  > {
  /** Default: no log. */
  readonly log?: LogOptions | undefined;
  /** Names of this server in `Host`, besides those that {@link hostCheck} always accepts. */
  readonly hosts: readonly string[];
  readonly requestTimeoutSeconds: number;
  /** Milliseconds without progress after which a connection is closed. Default 10,000. */
  readonly stalledMs?: number | undefined;
  /** Most connections at once. Default 12,288: the store and L1 need file descriptors too. */
  readonly mostConnections?: number | undefined;
  readonly errorHandler?: typeof handleError;
  /** Methods of the routes on a path, for 405. Default: none. */
  readonly methodsOf?: (path: string) => readonly string[];
  /** Methods and paths of the routes, of which a 404 names the nearest. Default: none. */
  readonly routes?: readonly string[];
}

/**
 * The common part of this package's servers: log, request ids, timeouts, and one form of refusals.
 */
export function fastifyApp(options: AppOptions): FastifyInstance {
  const {
    log,
    hosts,
    requestTimeoutSeconds,
    methodsOf = () => [],
    routes = [],
    errorHandler = handleError,
    stalledMs = STALLED_MS,
    mostConnections,
    ...rest
  } = options;
  const isOurs = hostCheck(hosts);
  const app = Fastify({
    ...logging(log),
    ...rest,
    genReqId: rest.trustProxy ? requestIdBehindProxy : requestId,
    requestTimeout: requestTimeoutSeconds * 1000,
    connectionTimeout: stalledMs,
    // Node swaps the two timeouts if the one for headers, 60 s by default, is longer.
    http: {
      headersTimeout: requestTimeoutSeconds * 1000,
      connectionsCheckingInterval: Math.min(5000, requestTimeoutSeconds * 500),
      // Our own hook refuses the request, in the form of every other error.
      requireHostHeader: false,
    },
    frameworkErrors: handleError,
    clientErrorHandler: handleClientError,
  });
  app.decorateRequest("problemCode", null);
  app.setErrorHandler(errorHandler);
  app.setNotFoundHandler(notFoundHandler(methodsOf, routes));
  // Routes with bodies bring their own parsers. An unknown route gets 404 whatever its body is.
  app.removeAllContentTypeParsers();
  app.addContentTypeParser("*", (_request, _payload, done) => done(null));
  // Hooks of every request use callbacks, because a promise would cost more than the hook itself.
  app.addHook("onRequest", (request, reply, done) => {
    if (!watchConnection(request.raw, reply.raw, stalledMs)) return;
    reply.header("x-request-id", request.id).header("x-content-type-options", "nosniff");
    requireClear(request.raw);
    if (!isOurs(request.headers.host)) throw new ServerError("host_unknown");
    done();
  });
  app.server.on("checkExpectation", refuseExpectation).on("connect", refuseTunnel);
  boundConnections(app.server, mostConnections);
  return app;
}

/**
 * Fastify asks for the id before it reads anything else of a request. It believes any text in the
 * header of addresses, and trusts a proxy only by its bare address, so the header is rewritten now.
 */
function requestIdBehindProxy(request: IncomingMessage): string {
  const field = request.headers["x-forwarded-for"];
  if (typeof field === "string") request.headers["x-forwarded-for"] = forwardedAddresses(field);
  return requestId(request);
}

const SAFE = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/;

/**
 * The caller's X-Request-Id when it is safe (1 to 64 of `A-Z a-z 0-9 . _ -`), else a new UUIDv7.
 */
export function requestId(request: IncomingMessage): string {
  const given = request.headers["x-request-id"];
  return typeof given === "string" && SAFE.test(given) ? given : timeUuid(Date.now());
}

/**
 * Most unanswered requests of one connection. Hardly any client sends a second one before the first
 * answer.
 */
const MOST_UNANSWERED = 32;

const unanswered = new WeakMap<Socket, number>();

/**
 * Watches a request's connection. Closes one with too many unanswered requests, whose answers would
 * wait here. After `stalledMs` without traffic, closes one whose peer does not read its answer or
 * does not send the rest of its body. While the server works, the peer owes nothing. Returns false
 * for a closed connection.
 */
function watchConnection(
  request: IncomingMessage,
  response: ServerResponse,
  stalledMs: number,
): boolean {
  const { socket } = request;
  const count = (unanswered.get(socket) ?? 0) + 1;
  // Node's parser goes on to the end of what it has read.
  if (socket.destroyed) return false;
  if (count > MOST_UNANSWERED) {
    socket.destroy();
    return false;
  }
  unanswered.set(socket, count);
  response.once("close", () => unanswered.set(socket, (unanswered.get(socket) ?? 1) - 1));
  // Thousands that open their connections again at once would delay everybody, so the times differ.
  // A request in memory has no such socket.
  socket.setTimeout?.(stalledMs * (1 + Math.random()));
  response.on("timeout", () => {
    if (socket.writableLength > 0 || (request.complete === false && request.readableLength === 0))
      socket.destroy();
  });
  if (request.headers["transfer-encoding"] !== undefined) boundPieces(request, response);
  return true;
}

/**
 * Header fields that may occur once. Node keeps the first of several, but a proxy may have used the
 * last.
 */
const SINGLE = new Set(["host", "authorization", "content-type", "idempotency-key"]);
const SINGLE_LENGTHS = new Set([...SINGLE].map(({ length }) => length));

/**
 * Throws `malformed_request` for an ambiguous request: a repeated header field of {@link SINGLE},
 * no Host (RFC 9112, 3.2), or a URL that is not percent-encoded UTF-8.
 */
function requireClear({ url = "", rawHeaders, headers, httpVersion }: IncomingMessage): void {
  if (!/^[!-~]*$/.test(url) || (url.includes("%") && !isUtf8(url)))
    throw new ServerError("malformed_request", "The URL is not percent-encoded UTF-8.");
  if (headers.host === undefined && httpVersion === "1.1") {
    throw new ServerError("malformed_request", "The Host header is missing.");
  }
  const seen: string[] = [];
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const raw = rawHeaders[i] ?? "";
    if (!SINGLE_LENGTHS.has(raw.length)) continue;
    const name = raw.toLowerCase();
    if (!SINGLE.has(name)) continue;
    if (seen.includes(name))
      throw new ServerError("malformed_request", `The header ${name} occurs more than once.`);
    seen.push(name);
  }
}

function isUtf8(url: string): boolean {
  try {
    return decodeURIComponent(url) !== "";
  } catch {
    return false;
  }
}

/**
 * Tells whether a Host header names this server; `*` among `hosts` accepts every name. Another site
 * can point its name to this address (DNS rebinding), and a browser would let it read responses. No
 * other site can own addresses, `localhost` or names without a dot.
 */
function hostCheck(hosts: readonly string[]): (host: string | undefined) => boolean {
  const names = new Set(hosts.map((name) => name.toLowerCase()));
  /** The last accepted name: nearly all requests have the same. */
  let taken: string | undefined;
  return (host) => {
    // HTTP/1.0 has none, and no browser uses it.
    if (host === undefined || host === taken || names.has("*")) return true;
    const name = host.toLowerCase().replace(/:\d*$/, "").replace(/\.$/, "");
    const isAddress = isIP(name.replace(/^\[(.*)\]$/, "$1")) !== 0;
    const known =
      isAddress || !name.includes(".") || name.endsWith(".localhost") || names.has(name);
    if (known) taken = host;
    return known;
  };
}

const CODES: Readonly<Record<string, ServerErrorCode>> = {
  ERR_HTTP_REQUEST_TIMEOUT: "request_timeout",
  HPE_HEADER_OVERFLOW: "headers_too_large",
};

/** Answers a request that Node's HTTP parser refused, on its socket, and closes the socket. */
function handleClientError(error: Error & { readonly code?: string }, socket: Socket): void {
  if (error.code === "ECONNRESET" || socket.destroyed) return;
  if (socket.writable) socket.write(answer(CODES[error.code ?? ""] ?? "malformed_request"));
  socket.destroy(error);
}

/**
 * Refuses CONNECT, because this server is no proxy. Node would close the connection without an
 * answer.
 */
function refuseTunnel(_request: IncomingMessage, socket: Duplex): void {
  socket.on("error", () => {});
  socket.end(answer("method_not_allowed"));
}

/** Answers an `Expect` that Node does not know. Node itself would answer without a body. */
function refuseExpectation(request: IncomingMessage, response: ServerResponse): void {
  const id = requestId(request);
  const body = problem("expectation_failed", id);
  const text = JSON.stringify(body);
  response.writeHead(body.status, {
    "content-type": "application/problem+json",
    "content-length": Buffer.byteLength(text),
    "x-request-id": id,
    connection: "close",
  });
  response.end(text);
}
