import { type IncomingMessage, type Server, type ServerResponse, STATUS_CODES } from "node:http";
import { isIP, type Socket } from "node:net";
import type { Duplex } from "node:stream";
import Fastify, { type FastifyInstance, type FastifyServerOptions } from "fastify";
import { timeUuid } from "../../core/internal.ts";
import { addressGroup } from "./access/rate-limit.ts";
import { handleError, notFoundHandler, problem, ServerError, type ServerErrorCode } from "./errors.ts";
import { type LogOptions, logging } from "./log.ts";
import { Turns } from "./turns.ts";

/** Milliseconds without progress after which a connection can be closed. */
const STALLED_MS = 10_000;

interface AppOptions
  extends Pick<FastifyServerOptions, "bodyLimit" | "trustProxy" | "return503OnClosing" | "forceCloseConnections"> {
  /** Default: no log. */
  readonly log?: LogOptions | undefined;
  /** Names of this server in `Host`, besides those that {@link HostNames} always accepts. */
  readonly hosts: readonly string[];
  /** Timeout for receiving a whole request, in seconds. */
  readonly requestTimeoutSeconds: number;
  /** Milliseconds without progress after which a connection is closed. Default 10,000. */
  readonly stalledMs?: number | undefined;
  /** Most connections at once. Default 12,288: the store and L1 need file descriptors too. */
  readonly mostConnections?: number | undefined;
  /** Default: {@link handleError}. */
  readonly errorHandler?: typeof handleError;
  /** Methods of the routes on a path, for 405. Default: none. */
  readonly methodsOf?: (path: string) => readonly string[];
}

/** The common part of this package's servers: log, request ids, timeouts, and one form of refusals. */
export function fastifyApp(options: AppOptions): FastifyInstance {
  const {
    log,
    hosts,
    requestTimeoutSeconds,
    methodsOf = () => [],
    errorHandler = handleError,
    stalledMs = STALLED_MS,
    mostConnections,
    ...rest
  } = options;
  const names = new HostNames(hosts);
  const app = Fastify({
    ...logging(log),
    ...rest,
    genReqId: requestId,
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
  app.setNotFoundHandler(notFoundHandler(methodsOf));
  // Routes with bodies bring their own parsers. An unknown route gets 404 whatever its body is.
  app.removeAllContentTypeParsers();
  app.addContentTypeParser("*", (_request, _payload, done) => done(null));
  // Hooks of every request use callbacks, because a promise would cost more than the hook itself.
  app.addHook("onRequest", (request, reply, done) => {
    if (!watchConnection(request.raw, reply.raw, stalledMs)) return;
    reply.header("x-request-id", request.id).header("x-content-type-options", "nosniff");
    requireClear(request.raw);
    if (!names.has(request.headers.host)) throw new ServerError("host_unknown");
    done();
  });
  app.server.on("checkExpectation", refuseExpectation).on("connect", refuseTunnel);
  boundConnections(app.server, mostConnections);
  return app;
}

/** Ids of callers that are safe in logs and headers. */
const SAFE = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/;

/** The caller's X-Request-Id when it is safe (1 to 64 of `A-Z a-z 0-9 . _ -`), else a new UUIDv7. */
export function requestId(request: IncomingMessage): string {
  const given = request.headers["x-request-id"];
  return typeof given === "string" && SAFE.test(given) ? given : timeUuid(Date.now());
}

/** Most unanswered requests of one connection. Hardly any client sends a second one before the first answer. */
const MOST_UNANSWERED = 32;

const unanswered = new WeakMap<Socket, number>();

/**
 * Watches a request's connection. Closes one with too many unanswered requests, whose answers would wait here. After
 * `stalledMs` without traffic, closes one whose peer does not read its answer or does not send the rest of its body.
 * While the server works, the peer owes nothing. Returns false for a closed connection.
 */
export function watchConnection(request: IncomingMessage, response: ServerResponse, stalledMs: number): boolean {
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
  // Not all at the same time: thousands that open their connections again would delay everybody.
  // A request in memory has no such socket.
  socket.setTimeout?.(stalledMs * (1 + Math.random()));
  response.on("timeout", () => {
    if (socket.writableLength > 0 || (request.complete === false && request.readableLength === 0)) socket.destroy();
  });
  if (request.headers["transfer-encoding"] !== undefined) boundPieces(request, response);
  return true;
}

/** Least average bytes of a chunked body's pieces. */
const PIECE_BYTES = 16;
/** Pieces that may be smaller. */
const SMALL_PIECES = 64;

/**
 * Ends a request whose body comes in tiny pieces. Node's parser calls `push` for each, thousands of times for what it
 * reads at once: 400 connections delayed everybody by 18 s, however soon they were refused.
 */
function boundPieces(request: IncomingMessage, response: ServerResponse): void {
  const { socket } = request;
  let spare = SMALL_PIECES * PIECE_BYTES;
  // Nobody needs the rest of a body that was answered before its end.
  response.once("finish", () => {
    if (!request.complete) close();
  });
  const close = () => {
    deafen(socket);
    socket.destroySoon();
  };
  request.push = (piece: Buffer | null) => {
    spare += piece === null ? 0 : piece.length - PIECE_BYTES;
    if (spare >= 0) return Object.getPrototypeOf(request).push.call(request, piece);
    if (!response.headersSent) socket.write(answer("malformed_request", TINY_PIECES));
    close();
    return false;
  };
}

/**
 * Lets the parser of a socket that is about to close skip the bodies in what it has read: Node's would report each
 * piece even of a closed connection. Node keeps parsers for other sockets, so this one listens again in the end.
 */
function deafen(socket: Socket & { parser?: Record<number, unknown> | null }): void {
  const { parser } = socket;
  const [key, report] =
    Object.entries(parser ?? {}).find(([, each]) => each instanceof Function && each.name === "parserOnBody") ?? [];
  if (!parser || key === undefined) return;
  parser[Number(key)] = null;
  socket.once("close", () => {
    parser[Number(key)] = report;
  });
}

const TINY_PIECES = `The body came in pieces of less than ${PIECE_BYTES} bytes. Send it in larger ones, or with a Content-Length.`;

const MOST_CONNECTIONS = 12_288;

/** Milliseconds between two connections of strangers, so that they take a tenth of the event loop. */
const STRANGER_MS = 4;

/** Most addresses of tenants that are remembered. */
const MOST_KNOWN = 10_000;

/** Emitted on a socket with the tenant of a request whose credentials were right. */
export const RECOGNIZED = "mintmark:recognized";

/**
 * Keeps at most `most` connections, half of them for callers that were {@link RECOGNIZED}. One too many ends the oldest
 * of the address, the IPv6 /48 or the tenant with the most, so that no others take the connections of a tenant. New
 * connections begin one after the other, and addresses take turns, because thousands that begin at once would delay
 * everybody. Those from addresses of tenants do not wait for strangers.
 */
export function boundConnections(server: Server, most = MOST_CONNECTIONS): void {
  const strangers = new Crowds();
  const tenants = new Crowds();
  const turns = { ofStrangers: new Turns(STRANGER_MS), ofTenants: new Turns() };
  const known = new Set<string>();
  const [begin] = server.listeners("connection");
  if (begin === undefined) throw new Error("the server does not serve HTTP");
  server.off("connection", begin as () => void);
  Object.assign(server, { pauseOnConnect: true });
  server.on("connection", async (socket) => {
    const address = addressGroup(socket.remoteAddress ?? "", 48);
    // Until Node's HTTP server listens to it.
    const ignore = () => {};
    socket.on("error", ignore);
    strangers.add(address, socket);
    socket.once("close", () => strangers.delete(address, socket));
    socket.once(RECOGNIZED, (tenant: string) => {
      known.delete(address);
      known.add(address);
      const [oldest = address] = known;
      if (known.size > MOST_KNOWN) known.delete(oldest);
      if (!strangers.delete(address, socket)) return;
      tenants.add(tenant, socket);
      socket.once("close", () => tenants.delete(tenant, socket));
    });
    if (strangers.count + tenants.count > most) (strangers.count > most / 2 ? strangers : tenants).endOne();
    await (known.has(address) ? turns.ofTenants : turns.ofStrangers).turn(address);
    socket.off("error", ignore);
    if (!server.listening) socket.destroy();
    if (socket.destroyed) return;
    begin.call(server, socket);
    socket.resume();
  });
}

/** Sockets by the name of whom they belong to. */
class Crowds {
  count = 0;
  readonly #crowds = new Map<string, Set<Socket>>();

  add(name: string, socket: Socket): void {
    this.#crowds.set(name, (this.#crowds.get(name) ?? new Set()).add(socket));
    this.count += 1;
  }

  /** Returns whether the socket was here. */
  delete(name: string, socket: Socket): boolean {
    const crowd = this.#crowds.get(name);
    if (crowd?.delete(socket) !== true) return false;
    if (crowd.size === 0) this.#crowds.delete(name);
    this.count -= 1;
    return true;
  }

  /** Ends the oldest socket of the largest crowd. */
  endOne(): void {
    let [name, most] = ["", new Set<Socket>()];
    for (const [each, crowd] of this.#crowds) if (crowd.size > most.size) [name, most] = [each, crowd];
    const [oldest] = most;
    if (oldest === undefined) return;
    this.delete(name, oldest);
    oldest.destroy();
  }
}

/** Header fields that may occur once. Of several, Node keeps the first, but a proxy may have used the last. */
const SINGLE = new Set(["host", "authorization", "content-type", "idempotency-key"]);
const SINGLE_LENGTHS = new Set([...SINGLE].map(({ length }) => length));

/**
 * Throws `malformed_request` for an ambiguous request: a repeated header field of {@link SINGLE}, no Host (RFC 9112,
 * 3.2), or a URL that is not percent-encoded UTF-8.
 */
export function requireClear({ url = "", rawHeaders, headers, httpVersion }: IncomingMessage): void {
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
    if (seen.includes(name)) throw new ServerError("malformed_request", `The header ${name} occurs more than once.`);
    seen.push(name);
  }
}

/** Whether a URL's escapes are UTF-8. */
function isUtf8(url: string): boolean {
  try {
    return decodeURIComponent(url) !== "";
  } catch {
    return false;
  }
}

/**
 * Host names for requests to this server. Another site can point its name to this address (DNS rebinding), and a
 * browser would let it read responses. No other site can own addresses, `localhost` or names without a dot.
 */
export class HostNames {
  readonly #names: ReadonlySet<string>;
  /** The last accepted name: nearly all requests have the same. */
  #taken: string | undefined;

  /** `*` among the names accepts every name. */
  constructor(names: readonly string[]) {
    this.#names = new Set(names.map((name) => name.toLowerCase()));
  }

  /** Whether a Host header names this server. HTTP/1.0 has none, and no browser uses it. */
  has(host: string | undefined): boolean {
    if (host === undefined || host === this.#taken || this.#names.has("*")) return true;
    const name = host.toLowerCase().replace(/:\d*$/, "").replace(/\.$/, "");
    const isAddress = isIP(name.replace(/^\[(.*)\]$/, "$1")) !== 0;
    const known = isAddress || !name.includes(".") || name.endsWith(".localhost") || this.#names.has(name);
    if (known) this.#taken = host;
    return known;
  }
}

const CODES: Readonly<Record<string, ServerErrorCode>> = {
  ERR_HTTP_REQUEST_TIMEOUT: "request_timeout",
  HPE_HEADER_OVERFLOW: "headers_too_large",
};

/** Answers a request that Node's HTTP parser refused, on its socket, and closes the socket. */
export function handleClientError(error: Error & { readonly code?: string }, socket: Socket): void {
  if (error.code === "ECONNRESET" || socket.destroyed) return;
  if (socket.writable) socket.write(answer(CODES[error.code ?? ""] ?? "malformed_request"));
  socket.destroy(error);
}

function answer(code: ServerErrorCode, detail?: string): string {
  const requestId = timeUuid(Date.now());
  const body = problem(code, requestId, detail);
  const text = JSON.stringify(body);
  return [
    `HTTP/1.1 ${body.status} ${STATUS_CODES[body.status]}`,
    "Connection: close",
    "Content-Type: application/problem+json",
    `Content-Length: ${Buffer.byteLength(text)}`,
    `X-Request-Id: ${requestId}`,
    "",
    text,
  ].join("\r\n");
}

/** Refuses CONNECT, because this server is no proxy. Node would close the connection without an answer. */
export function refuseTunnel(_request: IncomingMessage, socket: Duplex): void {
  socket.on("error", () => {});
  socket.end(answer("method_not_allowed"));
}

/** Answers an `Expect` that Node does not know. Node itself would answer without a body. */
export function refuseExpectation(request: IncomingMessage, response: ServerResponse): void {
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
