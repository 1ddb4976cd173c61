import { describe, expect, it, vi } from "vitest";
import type { TransactionFilter } from "../../../core/index.ts";
import { Table } from "../../../core/store/group.ts";
import { all, type Fixture, fixture, mintOf, requestOf } from "./fixture.ts";

/** Entries that the engine read from its store while it did something. */
async function recordsRead({ database }: Fixture, work: () => Promise<unknown>): Promise<number> {
  let read = 0;
  const { get, iterator } = database;
  Object.assign(database, {
    get: (...args: Parameters<typeof get>) => {
      read++;
      return get.apply(database, args);
    },
    iterator: (...args: Parameters<typeof iterator>) => {
      const made = iterator.apply(database, args);
      const { nextv } = made;
      made.nextv = async (...sizes: Parameters<typeof nextv>) => {
        const entries = await nextv.apply(made, sizes);
        read += entries.length;
        return entries;
      };
      return made;
    },
  });
  try {
    await work();
  } finally {
    Object.assign(database, { get, iterator });
  }
  return read;
}

describe("a filter", () => {
  it("by time, mint, or withdrawals reads a few records of many", async () => {
    const world = await fixture();
    const { engine, tenant, assets, clock } = world;
    await using _ = engine;
    const results = [];
    for (let i = 0; i < 500; i++) {
      clock.now += 1000;
      results.push(await engine.mint(tenant.principal, requestOf(tenant.users[0], mintOf(assets.erc721, i))));
    }
    const middle = results[250];
    const time = clock.now - 249_000;
    const filters: TransactionFilter[] = [
      { createdAfter: time - 1, createdBefore: time + 1 },
      { createdBefore: time + 1, createdAfter: time - 1, order: "asc" },
      { mintId: middle?.mintId },
      { type: "withdrawal" },
    ];
    for (const filter of filters) {
      let found = 0;
      const read = await recordsRead(world, async () => {
        found = (await all(engine.transactions.list(tenant.applicationId, filter))).length;
      });
      expect(found).toBe(filter.type === undefined ? 1 : 0);
      expect(read, JSON.stringify(filter)).toBeLessThan(60);
    }
  });
});

describe("a page of batches", () => {
  it("has both modes by number, however unevenly sealed, and reads only its own batches", async () => {
    const { engine, tenant, assets } = await fixture();
    await using _ = engine;
    for (let i = 0; i < 40; i++) {
      const mode = i % 10 === 3 ? "zk-rollup" : "validium";
      await engine.mint(tenant.principal, requestOf(tenant.users[0], mintOf(assets.erc721, 7_000 + i, 1, mode)));
      await engine.operator.seal(mode);
    }
    const ids = (batches: readonly { readonly batchId: string }[]) => batches.map(({ batchId }) => batchId);
    const wanted = Array.from({ length: 36 }, (__, i) => [`zk-rollup-${35 - i}`, `validium-${35 - i}`]).flat();
    const expected = wanted.filter((id) => !id.startsWith("zk") || Number(id.split("-")[2]) < 4);
    expect(ids(await all(engine.batches.list({ limit: 3 })))).toEqual(expected);
    expect(ids(await all(engine.batches.list({ limit: 3, mode: "zk-rollup" })))).toEqual(
      expected.filter((id) => id.startsWith("zk")),
    );
    const asked = vi.spyOn(Table.prototype, "get");
    const listed = vi.spyOn(Table.prototype, "values");
    const page = await engine.batches.list({ mode: "validium", limit: 5 });
    expect(ids(page.data)).toEqual(Array.from({ length: 5 }, (__, i) => `validium-${35 - i}`));
    expect(asked.mock.calls.length).toBeLessThanOrEqual(6);
    expect(listed).not.toHaveBeenCalled();
    vi.restoreAllMocks();
  });
});
