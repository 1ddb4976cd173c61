import { type IncomingMessage, type ServerResponse, STATUS_CODES } from "node:http";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { problem, ServerError, type ServerErrorCode } from "./errors.ts";
import { newRequestId, requestId } from "./request-id.ts";

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

/** Refuses CONNECT, because this server is no proxy. Node would close the connection without an answer. */
export function refuseTunnel(_request: IncomingMessage, socket: Duplex): void {
  socket.on("error", () => {});
  socket.end(answer("method_not_allowed"));
}

/** Header fields that may occur once. Of several, Node keeps the first, but a proxy may have used the last. */
const SINGLE = new Set(["host", "authorization", "content-type", "idempotency-key"]);
const SINGLE_LENGTHS = new Set([...SINGLE].map(({ length }) => length));

/**
 * Throws `malformed_request` for an ambiguous request: a repeated header field of {@link SINGLE}, no Host (RFC 9112,
 * 3.2), or a URL that is not percent-encoded UTF-8.
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

/** Whether a URL is printable ASCII, and its escapes are UTF-8. */
function isEncoded(url: string): boolean {
  if (!/^[!-~]*$/.test(url)) return false;
  try {
    return !url.includes("%") || decodeURIComponent(url) !== "";
  } catch {
    return false;
  }
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
