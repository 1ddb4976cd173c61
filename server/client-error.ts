import { type IncomingMessage, type ServerResponse, STATUS_CODES } from "node:http";
import type { Socket } from "node:net";
import { v7 } from "uuid";
import { problem, type ServerErrorCode } from "./errors.ts";
import { requestId } from "./request-id.ts";

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
  const requestId = v7();
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

/** Answers an `Expect` that Node does not know, which it would otherwise refuse without a body. */
export function refuseExpectation(request: IncomingMessage, response: ServerResponse): void {
  const id = requestId(request);
  const body = problem("expectation_failed", id);
  const headers = { "content-type": "application/problem+json", "x-request-id": id, connection: "close" };
  response.writeHead(body.status, headers).end(JSON.stringify(body));
}
