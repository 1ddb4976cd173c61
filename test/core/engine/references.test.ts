import { describe, expect, it } from "vitest";
import { all, type Fixture, fixture, memory, mintOf, openTest, refusal } from "./fixture.ts";

const mint = ({ engine, tenant }: Fixture, user: number, ...mints: object[]) =>
  engine.mint(tenant.principal, { users: [{ userId: tenant.users[user]?.userId, mints }] });

describe("the reference of a mint", () => {
  it("is in its transaction, and finds its transactions and vaults, page by page and after a restart", async () => {
    const store = memory();
    const made = await fixture({ store });
    const { engine, tenant, assets } = made;
    const { applicationId } = tenant;
    await mint(
      made,
      0,
      { ...mintOf(assets.erc721, 1), reference: "order 1" },
      { ...mintOf(assets.erc20, "", 5), reference: "order 1" },
      mintOf(assets.erc721, 2),
      { ...mintOf(assets.erc721, 3), reference: "order 1 again" },
    );
    await mint(made, 1, mintOf(assets.erc721, 4), {
      ...mintOf(assets.erc721, 5, 1, "zk-rollup"),
      reference: "order 1",
    });
    // More of the same vault.
    await mint(made, 0, { ...mintOf(assets.erc20, "", 7), reference: "order 1" });
    const found = async (on: typeof engine, filter: object) => {
      const transactions = [];
      for (let cursor: string | undefined; ; ) {
        const page = await on.transactions.list(applicationId, { ...filter, order: "asc", limit: 2, cursor });
        transactions.push(...page.data);
        if (page.nextCursor === null) break;
        cursor = page.nextCursor;
      }
      const vaults = await all(on.vaults.list(applicationId, filter));
      return [
        transactions.map(({ sequence, reference }) => [sequence, reference]),
        vaults.map(({ tokenId, amount }) => tokenId ?? amount),
      ];
    };
    const expected = [
      [0, "order 1"],
      [1, "order 1"],
      [5, "order 1"],
      [6, "order 1"],
    ];
    expect(await found(engine, { reference: "order 1" })).toEqual([expected, [1n, 12n, 5n]]);
    expect(await found(engine, { reference: "order 1", userId: tenant.users[1]?.userId })).toEqual([
      [expected[2]],
      [5n],
    ]);
    expect(await found(engine, { reference: "order 1", assetId: assets.erc721 })).toEqual([
      [expected[0], expected[2]],
      [1n, 5n],
    ]);
    expect(await found(engine, { reference: "order" })).toEqual([[], []]);
    const newest = await engine.transactions.list(applicationId, { limit: 3 });
    expect(newest.data.map(({ reference }) => reference)).toEqual(["order 1", "order 1", null]);
    expect((await engine.operator.verify()).problems).toEqual([]);
    await engine.close();
    await using again = await openTest(store);
    expect(await found(again, { reference: "order 1" })).toEqual([expected, [1n, 12n, 5n]]);
    expect((await again.operator.verify()).problems).toEqual([]);
  });

  it("is part of the request that an idempotency key compares, and of a replay", async () => {
    const made = await fixture();
    const { engine, tenant, assets } = made;
    await using _ = engine;
    const request = (reference: string) => ({
      users: [{ userId: tenant.users[0]?.userId, mints: [{ ...mintOf(assets.erc20, "", 5), reference }] }],
    });
    const once = { idempotencyKey: "k" };
    const { mintId } = await engine.mint(tenant.principal, request("a"), once);
    expect(await engine.mint(tenant.principal, request("a"), once)).toMatchObject({ replayed: true, mintId });
    expect((await refusal(engine.mint(tenant.principal, request("b"), once))).code).toBe("idempotency_key_reused");
  });

  it("applies to every token of a quantity", async () => {
    const made = await fixture();
    const { engine, tenant } = made;
    await using _ = engine;
    const names = { name: "Own", symbol: "OWN", contractAddress: `0x${"ca".repeat(20)}` as const, firstTokenId: 1n };
    const { assetId } = await engine.assets.add({ standard: "erc721", ...names, applicationId: tenant.applicationId });
    await engine.operator.recordRegistered(assetId);
    const entry = { assetId, dataAvailabilityMode: "validium", quantity: 2 };
    await mint(made, 0, entry, { ...entry, reference: "gift" }, entry);
    const gift = await all(engine.vaults.list(tenant.applicationId, { reference: "gift" }));
    expect(gift.map(({ tokenId }) => tokenId)).toEqual([3n, 4n]);
  });

  it.each([[""], ["x".repeat(65)], ["a\nb"], [7], [null]])("is refused as %j", async (reference) => {
    const made = await fixture();
    await using _ = made.engine;
    expect(await refusal(mint(made, 0, { ...mintOf(made.assets.erc721, 1), reference }))).toEqual({
      code: "validation_failed",
      issues: { "/users/0/mints/0/reference": "validation_failed" },
    });
  });
});
