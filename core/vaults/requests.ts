import { sequenceIn } from "../store/journal.ts";
import type { StoreReader } from "../store/ports.ts";
import { blockOf, firstOfBlock, markKey, transactionKey } from "../store/store-keys.ts";

type Entries = Pick<StoreReader, "entries">;

/** An application's requests within a range of sequences, from an index. */
export interface RequestRange {
  readonly from: number;
  readonly to: number; // Exclusive
  readonly ascending: boolean;
}

/** Journal sequences of the requests in an index. */
export async function* requestsIn(
  store: Entries,
  at: (sequence: number) => Buffer,
  { from, to, ascending }: RequestRange,
): AsyncGenerator<number> {
  const start = await requestHolding(store, at, from);
  for await (const [, reference] of store.entries({ gte: at(start), lt: at(to), reverse: !ascending }))
    yield sequenceIn(reference);
}

/** Merges several indexes into one order. Each request comes once. */
export async function* requestsInAny(
  store: Entries,
  indexes: readonly ((sequence: number) => Buffer)[],
  range: RequestRange,
): AsyncGenerator<number> {
  const [only] = indexes;
  if (only !== undefined && indexes.length === 1) {
    yield* requestsIn(store, only, range);
    return;
  }
  const streams = indexes.map((at) => requestsIn(store, at, range));
  try {
    const heads = await Promise.all(streams.map((stream) => stream.next()));
    for (;;) {
      const present = heads.flatMap(({ done, value }) => (done === true ? [] : [value]));
      if (present.length === 0) return;
      const next = range.ascending ? Math.min(...present) : Math.max(...present);
      yield next;
      for (const [i, head] of heads.entries())
        if (head.done !== true && head.value === next) heads[i] = await (streams[i] as (typeof streams)[number]).next();
    }
  } finally {
    for (const stream of streams) await stream.return(undefined);
  }
}

/** The requests in the blocks that have every mark. */
export async function* requestsInBlocks(
  store: Entries,
  applicationIndex: number,
  marks: readonly Buffer[],
  { from, to, ascending }: RequestRange,
): AsyncGenerator<number> {
  const at = (sequence: number) => transactionKey(applicationIndex, sequence);
  const first = blockOf(await requestHolding(store, at, from));
  for await (const block of blocksWith(store, marks, first, blockOf(to - 1), ascending)) {
    const end = Math.min(to, firstOfBlock(block + 1));
    const range = { gte: at(firstOfBlock(block)), lt: at(end), reverse: !ascending };
    for await (const [, reference] of store.entries(range)) yield sequenceIn(reference);
  }
}

/** Blocks from `first` to `last` that have every mark. Skips from mark to mark. */
async function* blocksWith(store: Entries, marks: readonly Buffer[], first: number, last: number, ascending: boolean) {
  let at = ascending ? first : last;
  while (at >= first && at <= last) {
    let agreed = 0;
    for (let i = 0; agreed < marks.length; i = (i + 1) % marks.length) {
      const mark = marks[i] as Buffer;
      const range = ascending
        ? { gte: markKey(mark, at), lte: markKey(mark, last) }
        : { gte: markKey(mark, first), lte: markKey(mark, at), reverse: true };
      const next = await firstBlock(store, range);
      if (next === null) return;
      agreed = next === at ? agreed + 1 : 1;
      at = next;
    }
    yield at;
    at += ascending ? 1 : -1;
  }
}

async function firstBlock(store: Entries, range: Parameters<Entries["entries"]>[0]): Promise<number | null> {
  for await (const [key] of store.entries({ ...range, limit: 1 })) return Number(key.readBigUInt64BE(key.length - 8));
  return null;
}

/** The first sequence of the newest request at or before a sequence, which it may reach; else the sequence. */
async function requestHolding(store: Entries, at: (sequence: number) => Buffer, sequence: number): Promise<number> {
  if (sequence === 0) return 0;
  for await (const [key] of store.entries({ gte: at(0), lte: at(sequence), reverse: true, limit: 1 }))
    return Number(key.readBigUInt64BE(key.length - 8));
  return sequence;
}
