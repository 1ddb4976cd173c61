import { createHash } from "node:crypto";
import { invalid, MintmarkError } from "../errors.ts";
import type { EngineContext } from "../ledger/context.ts";
import type { Ledger } from "../ledger/ledger.ts";
import type { Hash, Hex, Uuid } from "../model.ts";
import type { Group } from "../store/group.ts";
import { readIdempotencyKeys } from "../store/journal.ts";
import { decodeRecord, encodeRecord } from "../store/layout.ts";
import { idempotencyRecord } from "../store/records.ts";
import { keyOf } from "../store/store-keys.ts";
import type { Decision } from "./mint-transition.ts";

/**
 * Mints once for a caller's key; another request with it is refused with `idempotency_key_reused`.
 *
 * @param digest - of the request; `0x` for one that no mint can have accepted
 */
export function onceForKey(
  ledger: Ledger,
  applicationId: Uuid,
  callersKey: string,
  digest: Hex,
): Decision {
  const hash = sha256(callersKey);
  const { applicationIndex } = ledger.tenants.application(applicationId, null);
  const key = keyOf.idempotency(applicationIndex, hash);
  return {
    key,
    idempotency: { key: hash, digest },
    earlier(record) {
      if (record === undefined) return null;
      const first = decodeRecord(idempotencyRecord, record, "An idempotency record");
      if (first.digest !== digest) throw new MintmarkError("idempotency_key_reused");
      return first.sequence;
    },
    decide: (group, { sequence }) =>
      group.stage(key, encodeRecord(idempotencyRecord, { digest, sequence })),
  };
}

function sha256(text: string): Hash {
  return `0x${createHash("sha256").update(text).digest("hex")}`;
}

/** A request that is not a mint, under the key of its caller. */
export interface KeyedRequest {
  readonly applicationId: Uuid;
  readonly callersKey: string;
  /** SHA-256 of the request. */
  readonly digest: Hash;
}

/** Mints and other requests never share a key: callers cannot send the first character. */
function keyOfRequest(ledger: Ledger, { applicationId, callersKey }: KeyedRequest) {
  const { applicationIndex } = ledger.tenants.application(applicationId, null);
  const key = sha256(`\0${callersKey}`);
  return { applicationIndex, key, at: keyOf.idempotency(applicationIndex, key) };
}

/** Throws `idempotency_key_reused` if another request of the key was done. */
export async function requireSameRequest(ledger: Ledger, request: KeyedRequest): Promise<void> {
  requireSame(await ledger.store.get(keyOfRequest(ledger, request).at), request);
}

/** @returns whether the request is kept */
function requireSame(record: Buffer | undefined, { digest }: KeyedRequest): boolean {
  if (record === undefined) return false;
  const first = decodeRecord(idempotencyRecord, record, "An idempotency record");
  if (first.digest !== digest) throw new MintmarkError("idempotency_key_reused");
  return true;
}

/** Keeps the digest of a request that was done. Throws as {@link requireSameRequest} does. */
export async function keepRequest(
  { ledger, writer }: EngineContext,
  request: KeyedRequest,
  signal?: AbortSignal,
): Promise<void> {
  const { at, applicationIndex, key } = keyOfRequest(ledger, request);
  const { digest } = request;
  const apply = (group: Group, [stored]: readonly (Buffer | undefined)[]): void => {
    if (requireSame(group.resolve(at, stored), request)) return;
    const { sequence } = ledger.journal.record(group, {
      kind: "requestKept",
      applicationIndex,
      key,
      digest,
    });
    group.stage(at, encodeRecord(idempotencyRecord, { digest, sequence }));
  };
  await writer.run({ weight: 1, keys: () => [at], apply }, signal);
}

/** Most keys that one transition deletes. Mints wait for it, so it is small. */
const KEYS_AT_ONCE = 1_024;
/**
 * After this many entries without a key the step records how far it came, so that no later step
 * reads them again.
 */
const ENTRIES_AT_ONCE = 65_536;

/**
 * Deletes the idempotency keys of entries before a time. Each step is a journal entry, so a replay
 * of the journal deletes the same keys.
 *
 * @returns the number of deleted keys
 * @throws MintmarkError `validation_failed`, or the signal's reason between two steps
 */
export async function forgetIdempotencyKeys(
  context: EngineContext,
  before: number,
  signal?: AbortSignal,
): Promise<number> {
  const { ledger, writer } = context;
  if (!Number.isSafeInteger(before) || before < 0)
    throw invalid("before must be a time in milliseconds since 1970");
  let forgotten = 0;
  for (;;) {
    signal?.throwIfAborted();
    const { head } = ledger.journal;
    const from = head.durable.keysForgotten;
    const { upTo, keys, isLast } = await readForgettable(ledger, from, before);
    const apply = (group: Group): number => {
      // Another caller deleted them first.
      if (head.view(group).keysForgotten !== from) return 0;
      ledger.journal.record(group, { kind: "idempotencyForgotten", upTo });
      head.put(group, { ...head.view(group), keysForgotten: upTo });
      for (const key of keys) group.remove(key);
      return keys.length;
    };
    if (keys.length > 0 || upTo - from >= ENTRIES_AT_ONCE)
      forgotten += await writer.run({ weight: keys.length, keys: () => [], apply }, signal);
    if (isLast) return forgotten;
  }
}

/** The next keys that are old enough, with the end of their mints. Reads only what is on disk. */
async function readForgettable(ledger: Ledger, from: number, before: number) {
  const end = ledger.journal.head.durable.journalLength;
  const keys: Buffer[] = [];
  let upTo = from;
  for await (const { sequence, time, key } of readIdempotencyKeys(ledger.store, from)) {
    // Time never goes back in the journal.
    if (sequence >= end || time >= before) break;
    if (keys.length === KEYS_AT_ONCE || upTo - from === ENTRIES_AT_ONCE)
      return { upTo, keys, isLast: false };
    upTo = sequence + 1;
    if (key !== null) keys.push(keyOf.idempotency(key.applicationIndex, key.key));
  }
  return { upTo, keys, isLast: true };
}
