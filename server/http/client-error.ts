import { type IncomingMessage, type ServerResponse, STATUS_CODES } from "node:http";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { problem, ServerError, type ServerErrorCode } from "./errors.ts";
import { newRequestId, requestId } from "./request-id.ts";

const CODES: Readonly<Record<string, ServerErrorCode>> = {
  ERR_HTTP_REQUEST_TIMEOUT: "request_timeout",
  HPE_HEADER_OVERFLOW: "headers_too_large",
};

/** Answers what Node's HTTP parser refused before there was a request, on the bare socket, and closes it. */
export function handleClientError(error: Error & { readonly code?: string }, socket: Socket): void {
  if (error.code === "ECONNRESET" || socket.destroyed) return;
  if (socket.writable) socket.write(answer(CODES[error.code ?? ""] ?? "malformed_request"));
  socket.destroy(error);
}

function answer(code: ServerErrorCode): string {
  const requestId = newRequestId();
  const body = problem(code, requestId);
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

/** Answers CONNECT, which Node would hang up on: this server is no proxy. */
export function refuseTunnel(_request: IncomingMessage, socket: Duplex): void {
  socket.on("error", () => {});
  socket.end(answer("method_not_allowed"));
}

/** Header fields of which Node keeps the first and drops the others, where a proxy before it may have gone by the last. */
const SINGLE = new Set(["host", "authorization", "content-type", "idempotency-key"]);
const SINGLE_LENGTHS = new Set([...SINGLE].map(({ length }) => length));

/**
 * Throws `malformed_request` for a request that two parties could understand in two ways: a field twice that must come once, or no Host
 * (RFC 9112, 3.2), or an address that is not percent-encoded UTF-8.
 */
export function requireClear({ url = "", rawHeaders, headers, httpVersion }: IncomingMessage): void {
  if (!isEncoded(url)) throw new ServerError("malformed_request", "The URL is not percent-encoded UTF-8.");
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

/** Printable ASCII whose escapes make UTF-8. */
function isEncoded(url: string): boolean {
  if (!/^[!-~]*$/.test(url)) return false;
  try {
    return !url.includes("%") || decodeURIComponent(url) !== "";
  } catch {
    return false;
  }
}

/** Answers an `Expect` that Node does not know, which it would otherwise refuse without a body. */
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
