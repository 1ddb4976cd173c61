import { randomFillSync } from "node:crypto";
import type { Uuid } from "../model.ts";
import { uuidText } from "../store/layout.ts";

/** Random bytes drawn at a time, because a draw costs much more than its bytes. */
const POOL_BYTES = 4096;
const pool = Buffer.alloc(POOL_BYTES);
let used = POOL_BYTES;
const bytes = Buffer.alloc(16);

/**
 * A UUID of version 7 (RFC 9562): ms since 1970, then 74 random bits. Neighbours in time are neighbours in the store.
 */
export function timeUuid(now: number): Uuid {
  if (used + 10 > POOL_BYTES) {
    randomFillSync(pool);
    used = 0;
  }
  bytes.writeUIntBE(now, 0, 6);
  for (let i = 6; i < 16; i++) bytes[i] = pool[used++] as number;
  bytes[6] = 0x70 | ((bytes[6] as number) & 0x0f);
  bytes[8] = 0x80 | ((bytes[8] as number) & 0x3f);
  return uuidText(bytes);
}
