import type { List, PageOptions } from "../list-types.ts";
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
