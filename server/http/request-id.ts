import { randomFillSync } from "node:crypto";
import type { IncomingMessage } from "node:http";
import { v7 } from "uuid";

/** Ids of callers that are safe in logs and headers. */
const SAFE = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/;

/** Random bytes of one id, and of a pool for many ids, because each draw has a high fixed cost. */
const ID_BYTES = 16;
const pool = new Uint8Array(256 * ID_BYTES);
let used = pool.length;

/** The caller's X-Request-Id when it is safe (1 to 64 of `A-Z a-z 0-9 . _ -`), else a new UUIDv7. */
export function requestId(request: IncomingMessage): string {
  const given = request.headers["x-request-id"];
  return typeof given === "string" && SAFE.test(given) ? given : newRequestId();
}

export function newRequestId(): string {
  if (used === pool.length) {
    randomFillSync(pool);
    used = 0;
  }
  const start = used;
  used += ID_BYTES;
  return v7({ random: pool.subarray(start, used) });
}
