import { argumentError } from "../errors.ts";
import type { Page } from "../model.ts";
import type { EngineContext } from "./context.ts";
import type { CursorPosition } from "./cursor.ts";
import type { Ledger } from "./ledger.ts";

const DEFAULT_LIMIT = 50;
const MAX_LIMIT = 100;

export interface PageStart<P extends CursorPosition = number> {
  // The position after which the page begins; null for the first page
  readonly after: P | null;
  readonly limit: number;
}

/** The entries of a page, and the position after which the next page begins; null at the end. */
export interface PageEntries<T, P extends CursorPosition = number> {
  readonly data: readonly T[];
  readonly next: P | null;
}

/**
 * Makes the list that begins with the requested page. That page is read at once, the others during
 * iteration. A cursor is bound to the list's name, its owner and every filter. Rejects with
 * `cursor_invalid`, `validation_failed` for a limit outside of 1 to 100, and as `read` does.
 */
export function listOf<T, P extends CursorPosition = number>(
  context: EngineContext,
  name: string,
  owner: string,
  asked: PageOptions,
  read: (start: PageStart<P>, ledger: Ledger) => PageEntries<T, P> | Promise<PageEntries<T, P>>,
): List<T> {
  const { cursors } = context;
  const page = async (cursor: string | undefined): Promise<Page<T>> => {
    const limit = asked.limit ?? DEFAULT_LIMIT;
    if (!Number.isInteger(limit) || limit < 1 || limit > MAX_LIMIT)
      throw argumentError("limit", `must be a whole number from 1 to ${MAX_LIMIT}`);
    const scope = scopeOf(name, owner, asked);
    const { data, next } = await read(
      { after: cursors.read<P>(cursor, scope), limit },
      context.ledger,
    );
    return {
      data,
      nextCursor: next === null ? null : cursors.issue(next, scope),
      hasMore: next !== null,
      limit,
    };
  };
  const first = page(asked.cursor);
  return Object.assign(first, {
    async *[Symbol.asyncIterator](): AsyncGenerator<T, void, void> {
      for (let read = await first; ; read = await page(read.nextCursor ?? undefined)) {
        yield* read.data;
        if (read.nextCursor === null) return;
      }
    },
  });
}

function scopeOf(list: string, owner: string, filter: object): string {
  const bound = Object.entries(filter)
    .filter(([name, value]) => name !== "limit" && name !== "cursor" && value !== undefined)
    .map(([name, value]) => [name, typeof value === "bigint" ? value.toString() : value])
    .sort(([a], [b]) => (String(a) < String(b) ? -1 : 1));
  return JSON.stringify([list, owner, bound]);
}

/**
 * A page of a table whose records are numbered from 0, without those of which `view` is null.
 *
 * @param numbers - of the records to show, in ascending order; default all
 */
export function tablePage<V, T>(
  table: Pick<ReadonlyMap<number, V>, "size" | "get">,
  { after, limit }: PageStart,
  view: (record: V) => T | null,
  order: SortOrder = "asc",
  numbers?: readonly number[],
): PageEntries<T> {
  const data: T[] = [];
  const count = numbers?.length ?? table.size;
  const numberAt = (place: number) => numbers?.[place] ?? place;
  const step = order === "asc" ? 1 : -1;
  let last = after ?? (order === "asc" ? -1 : Number.POSITIVE_INFINITY);
  const behind = firstWhere(count, (place) => numberAt(place) > last);
  const before = firstWhere(count, (place) => numberAt(place) >= last) - 1;
  for (let place = step > 0 ? behind : before; place >= 0 && place < count; place += step) {
    const record = table.get(numberAt(place));
    const entry = record === undefined ? null : view(record);
    if (entry === null) continue;
    if (data.length === limit) return { data, next: last };
    data.push(entry);
    last = numberAt(place);
  }
  return { data, next: null };
}

/**
 * A list. `await` gives one page. Iterating gives every entry from that page on, with one page in
 * memory at a time.
 *
 * @example
 * const { data, nextCursor } = await engine.users.list(applicationId, { limit: 100 });
 * for await (const vault of engine.vaults.list(applicationId, { userId })) total += vault.amount;
 */
export interface List<T> extends Promise<Page<T>>, AsyncIterable<T> {}

/** `asc` has the oldest first, `desc` the newest. */
export type SortOrder = "asc" | "desc";

/** Bisects the numbers below `count` for the first one from which on `holds`. */
export function firstWhere(count: number, holds: (number: number) => boolean): number {
  let [low, high] = [0, count];
  while (low < high) {
    const middle = Math.floor((low + high) / 2);
    if (holds(middle)) high = middle;
    else low = middle + 1;
  }
  return low;
}

/** Selects a page of a list that can begin with its oldest entry or its newest. */
export interface OrderedPage extends PageOptions {
  /** Default `asc`. */
  readonly order?: SortOrder | undefined;
}

/** Selects a page of a list. */
export interface PageOptions {
  /** 1 to 100; default 50. */
  readonly limit?: number | undefined;
  /** `nextCursor` of the page before. Default: the first page. */
  readonly cursor?: string | undefined;
}
