import { answered, bringUp } from "./backup.ts";
import type { Journal, Store, StoreOperation } from "./ports.ts";
import { PREFIX } from "./store-keys.ts";

/**
 * A store with a second copy of its journal, to which it adds the missing entries first. A write
 * resolves once it is complete in the store and its entries are in the copy. So the copy has every
 * acknowledged write and is never ahead.
 */
export async function withJournal(store: Store, journal: Journal): Promise<Store> {
  let length = (await bringUp(store, journal)).entries;
  return {
    lost: store.lost,
    get: (key) => store.get(key),
    getMany: (keys) => store.getMany(keys),
    entries: (range) => store.entries(range),
    atSnapshot: (body) => store.atSnapshot(body),
    close: () => store.close(),
    async write(operations) {
      await store.write(operations);
      const isEntry = ({ key }: StoreOperation) => key[0] === PREFIX.journal;
      const entries = operations.flatMap((one) =>
        one.type === "put" && isEntry(one) ? [one.value] : [],
      );
      if (entries.length === 0) return;
      await answered(async () => journal.append(length, entries));
      length += entries.length;
    },
  };
}
