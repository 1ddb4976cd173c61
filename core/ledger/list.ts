import type { Page } from "../model.ts";

/**
 * The list that begins with the page that is asked for. That page is read at once; the others as the iteration comes to them.
 *
 * @param read - rejects for a page that cannot be read, and never throws
 */
export function listOf<T, P extends PageOptions>(asked: P, read: (page: P) => Promise<Page<T>>): List<T> {
  const first = read(asked);
  return Object.assign(first, {
    async *[Symbol.asyncIterator](): AsyncGenerator<T, void, void> {
      for (let page = await first; ; page = await read({ ...asked, cursor: page.nextCursor })) {
        yield* page.data;
        if (page.nextCursor === null) return;
      }
    },
  });
}

/**
 * A list: awaited it is one page; iterated it is every entry from that page on, of which no more than a page is in memory.
 *
 * @example
 * const { data, nextCursor } = await engine.users.list(applicationId, { limit: 100 });
 * for await (const vault of engine.vaults.list(applicationId, { userId })) total += vault.amount;
 */
export interface List<T> extends Promise<Page<T>>, AsyncIterable<T> {}

export interface PageOptions {
  /** 1 to 100; default 50. */
  readonly limit?: number | undefined;
  readonly cursor?: string | undefined;
}
