import type { IncomingMessage } from "node:http";
import { v7 } from "uuid";

/** What we are willing to write into logs and headers on a caller's word. */
const SAFE = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/;

/** The caller's X-Request-Id when it is safe (1 to 64 of `A-Z a-z 0-9 . _ -`), else a new UUIDv7. */
export function requestId(request: IncomingMessage): string {
  const given = request.headers["x-request-id"];
  return typeof given === "string" && SAFE.test(given) ? given : v7();
}
