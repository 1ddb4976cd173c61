import { MintmarkError } from "../errors.ts";
import type { Ledger } from "../ledger/ledger.ts";
import { readMintHeaders } from "../store/journal.ts";
import { idempotencyKeyKey } from "../store/store-keys.ts";

/** Keys that one transition forgets: few enough that mints do not wait for it. */
const KEYS_AT_ONCE = 1_024;
/** Journal entries without a key after which their end is recorded nevertheless, so that they are not looked at again. */
const ENTRIES_AT_ONCE = 65_536;

/** Idempotency keys of the mints from a journal sequence on. */
interface Forgettable {
  readonly from: number;
  /** Up to here, exclusive. */
  readonly upTo: number;
  readonly keys: readonly Buffer[];
  /** Nothing behind them is old enough. */
  readonly last: boolean;
}

/**
 * Forgets the idempotency keys of mints that were made before a time, in the order of the journal and in steps, each an entry of it:
 * what a later mint finds of its key follows from the journal alone. Returns how many.
 * Throws `validation_failed`, and the signal's reason between two steps.
 */
export async function forgetIdempotencyKeys(ledger: Ledger, before: number, signal?: AbortSignal): Promise<number> {
  if (!Number.isSafeInteger(before) || before < 0) {
    throw new MintmarkError("validation_failed", "before must be a time in milliseconds since 1970");
  }
  let forgotten = 0;
  for (;;) {
    signal?.throwIfAborted();
    const step = await readForgettable(ledger, ledger.durableHead.keysForgotten, before);
    if (step.keys.length > 0 || step.upTo - step.from >= ENTRIES_AT_ONCE)
      forgotten += await forget(ledger, step, signal);
    if (step.last) return forgotten;
  }
}

/** The next keys that are old enough. Only what is on disk is read, and time never goes back in the journal. */
async function readForgettable(ledger: Ledger, from: number, before: number): Promise<Forgettable> {
  const end = ledger.durableHead.journalLength;
  const keys: Buffer[] = [];
  let upTo = from;
  for await (const { sequence, time, header } of readMintHeaders(ledger.store, from)) {
    if (sequence >= end || time >= before) break;
    if (keys.length === KEYS_AT_ONCE || upTo - from === ENTRIES_AT_ONCE) return { from, upTo, keys, last: false };
    upTo = sequence + 1;
    if (header === null || header.idempotency === null) continue;
    keys.push(idempotencyKeyKey(header.applicationIndex, Buffer.from(header.idempotency.key.slice(2), "hex")));
  }
  return { from, upTo, keys, last: true };
}

function forget(ledger: Ledger, { from, upTo, keys }: Forgettable, signal?: AbortSignal): Promise<number> {
  return ledger.writer.run<number>(
    {
      weight: keys.length,
      keys: () => [],
      apply(group) {
        // Another caller was faster.
        if (ledger.head.keysForgotten !== from) return 0;
        ledger.record(group, { kind: "idempotencyForgotten", upTo });
        ledger.head = { ...ledger.head, keysForgotten: upTo };
        for (const key of keys) group.remove(key);
        return keys.length;
      },
    },
    signal,
  );
}
