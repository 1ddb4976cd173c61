/** Items of which the first one by an order is known: a binary heap. */
export class Heap<T> {
  readonly #items: T[] = [];
  readonly #isBefore: (a: T, b: T) => boolean;

  constructor(isBefore: (a: T, b: T) => boolean) {
    this.#isBefore = isBefore;
  }

  get first(): T | undefined {
    return this.#items[0];
  }

  add(item: T): void {
    const items = this.#items;
    let at = items.length;
    while (at > 0) {
      const above = (at - 1) >> 1;
      if (!this.#isBefore(item, items[above]!)) break;
      items[at] = items[above]!;
      at = above;
    }
    items[at] = item;
  }

  /** Puts an item in the place of the first one, or nothing for null. */
  replaceFirst(by: T | null): void {
    const items = this.#items;
    const item = by ?? items.pop();
    // The last item goes without another in its place.
    if (item === undefined || items.length === 0) return;
    let at = 0;
    for (;;) {
      const left = 2 * at + 1;
      const right = left + 1;
      const below =
        right < items.length && this.#isBefore(items[right]!, items[left]!) ? right : left;
      if (below >= items.length || !this.#isBefore(items[below]!, item)) break;
      items[at] = items[below]!;
      at = below;
    }
    items[at] = item;
  }
}
