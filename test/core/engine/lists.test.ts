import { describe, expect, it, vi } from "vitest";
import type { TransactionFilter } from "../../../core/index.ts";
import { withdrawalTypedData } from "../../../core/protocol/typed-data.ts";
import { Table } from "../../../core/store/group.ts";
import { all, type Fixture, fixture, mintOf, OWNERS, requestOf, SETTLEMENT } from "./fixture.ts";

const REQUESTS = 12;
const [owner] = OWNERS;

/** A dozen requests of both users, a second apart, with a withdrawal after every fourth. */
async function busy(): Promise<Fixture> {
  const made = await fixture();
  const { engine, tenant, assets, clock } = made;
  for (let i = 0; i < REQUESTS; i++) {
    clock.now += 1000;
    const mints = [mintOf(assets.erc721, i), mintOf(assets.erc20, "", 5, "zk-rollup")];
    await engine.mint(tenant.principal, requestOf(tenant.users[i % 2], ...mints));
    if (i % 4 !== 0) continue;
    await engine.operator.seal("validium");
    const { data } = await engine.vaults.list(tenant.applicationId, { userId: tenant.users[0]?.userId, limit: 100 });
    const vault = data.findLast(({ dataAvailabilityMode }) => dataAvailabilityMode === "validium");
    if (vault === undefined) throw new Error("no vault to withdraw");
    const deadline = BigInt(clock.now / 1000 + 3600);
    const message = { vaultId: vault.vaultId, withdrawnBefore: 0n, quantity: 1n, recipient: owner.address, deadline };
    const signature = await owner.signTypedData(withdrawalTypedData(SETTLEMENT, message));
    clock.now += 1000;
    await engine.withdrawals.request(tenant.principal, { ...message, signature });
  }
  return made;
}

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
  it("by time, vault, batch, mint or user finds the same as a plain filter over everything, in both orders", async () => {
    const { engine, tenant, clock } = await busy();
    await using _ = engine;
    const { applicationId } = tenant;
    const everything = await all(engine.transactions.list(applicationId, { order: "asc", limit: 100 }));
    const times = [0, clock.now + 1, ...everything.map(({ timestamps }) => timestamps.accepted ?? 0)];
    const filters: TransactionFilter[] = [
      ...times.flatMap((time) => [
        { createdAfter: time },
        { createdBefore: time },
        { createdAfter: time - 0.5, createdBefore: time + 1500.5 },
        { createdAfter: time - 2000, type: "withdrawal" as const },
        { createdBefore: time, userId: tenant.users[1]?.userId },
      ]),
      ...everything
        .slice(0, 8)
        .flatMap(({ vaultId, batchId, mintId }) => [
          { vaultId },
          { vaultId, userId: tenant.users[1]?.userId },
          { batchId },
          { batchId, type: "mint" as const },
          ...(mintId === null ? [] : [{ mintId }, { mintId, createdBefore: times[9] }]),
        ]),
      { vaultId: 99n },
      { batchId: "validium-99" },
      { batchId: "nonsense" },
      { mintId: tenant.applicationId },
      { userId: tenant.applicationId },
    ];
    for (const filter of filters) {
      const expected = everything.filter((one) => {
        const at = one.timestamps.accepted ?? 0;
        return (
          (filter.type === undefined || one.type === filter.type) &&
          (filter.userId === undefined || one.userId === filter.userId) &&
          (filter.vaultId === undefined || one.vaultId === filter.vaultId) &&
          (filter.batchId === undefined || one.batchId === filter.batchId) &&
          (filter.mintId === undefined || one.mintId === filter.mintId) &&
          (filter.createdAfter === undefined || at > filter.createdAfter) &&
          (filter.createdBefore === undefined || at < filter.createdBefore)
        );
      });
      const name = JSON.stringify({ ...filter, vaultId: String(filter.vaultId) });
      const list = (order: "asc" | "desc") =>
        all(engine.transactions.list(applicationId, { ...filter, order, limit: 3 }));
      expect(await list("asc"), name).toEqual(expected);
      expect(await list("desc"), name).toEqual(expected.toReversed());
    }
  });

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
