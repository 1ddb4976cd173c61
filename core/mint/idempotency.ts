import { createHash } from "node:crypto";
import { MintmarkError } from "../errors.ts";
import type { Hex } from "../model.ts";
import { decodeRecord } from "../store/layout.ts";
import { idempotencyRecord } from "../store/records.ts";
import { idempotencyKeyKey } from "../store/store-keys.ts";

/** The key of a request that must be done once: SHA-256 of the caller's key, and a fingerprint of the request. */
export interface Idempotency {
  readonly key: Hex;
  /** `0x` for a request that no mint can have accepted. */
  readonly digest: Hex;
}

/** The journal sequence of the mint that a request repeats; null for a new request. Throws `idempotency_key_reused`. */
export function earlierMint(record: Buffer | undefined, idempotency: Idempotency): number | null {
  if (record === undefined) return null;
  const { digest, sequence } = decodeRecord(idempotencyRecord, record, "An idempotency record");
  if (digest !== idempotency.digest) throw new MintmarkError("idempotency_key_reused");
  return sequence;
}

export function idempotencyKeyOf(applicationIndex: number, { key }: Pick<Idempotency, "key">): Buffer {
  return idempotencyKeyKey(applicationIndex, Buffer.from(key.slice(2), "hex"));
}

export function idempotencyKeyHash(key: string): Hex {
  return `0x${createHash("sha256").update(key).digest("hex")}`;
}
