import type { IncomingMessage, ServerResponse } from "node:http";
import { isIP, type Socket } from "node:net";
import { timeUuid } from "../../core/internal.ts";
import { ServerError } from "./errors.ts";

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
  return true;
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
