import { type IncomingMessage, type ServerResponse, STATUS_CODES } from "node:http";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { timeUuid } from "../../core/internal.ts";
import { problem, type ServerErrorCode } from "./errors.ts";
import { requestId } from "./incoming.ts";

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
  const requestId = timeUuid(Date.now());
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
