import fc from "fast-check";
import { describe, expect } from "vitest";
import type { Engine, Principal, Uuid } from "../../../core/index.ts";
import { decimalAmount, quantizedAmount } from "../../../core/protocol/quantized.ts";
import type { Fixture } from "./fixture.ts";
import {
  all,
  fixture,
  knownAsset,
  memory,
  mintingBlobOf,
  mintOf,
  OWNERS,
  openTest,
  refusal,
} from "./fixture.ts";
import { it } from "./it.ts";
import { committed, hear } from "./l1-fixture.ts";

/** Mints one entry of these fields. */
function mintFields({ engine, tenant }: Fixture, fields: object, options = {}) {
  const entry = { dataAvailabilityMode: "validium", ...fields };
  return engine.mint(
    tenant.principal,
    { users: [{ userId: tenant.users[0]?.userId, mints: [entry] }] } as unknown,
    options,
  );
}

async function tokenOf(
  made: Fixture,
  units: { readonly decimals: number; readonly quantum: bigint; readonly supplyCap?: bigint },
) {
  const assetId = await knownAsset(made.engine, "erc20", units);
  await made.engine.assets.enable(made.tenant.applicationId, assetId);
  return assetId;
}

describe("a decimal amount", () => {
  it.each([
    ["12.5", 18, 10n ** 16n, 1250n, "12.5"],
    ["12.50", 2, 1n, 1250n, "12.5"],
    ["0.000000000000000001", 18, 1n, 1n, "0.000000000000000001"],
    ["7", 0, 1n, 7n, "7"],
    ["7.000", 0, 1n, 7n, "7"],
    ["1000000", 6, 1_000_000n, 1_000_000n, "1000000"],
    ["9.223372036854775807", 18, 1n, (1n << 63n) - 1n, "9.223372036854775807"],
  ] as const)(
    "%s with %i decimals and quantum %s is %s units, and comes back as %s",
    async (amountDecimal, decimals, quantum, amount, text) => {
      const made = await fixture();
      await using _ = made.engine;
      const assetId = await tokenOf(made, { decimals, quantum });
      const { vaults } = await mintFields(made, { assetId, amountDecimal });
      const { name, symbol } = await made.engine.assets.get(made.tenant.applicationId, assetId);
      const shown = { name, symbol, quantum, decimals, amount, amountDecimal: text };
      expect(vaults).toMatchObject([shown]);
      const { applicationId } = made.tenant;
      expect((await made.engine.vaults.list(applicationId)).data).toMatchObject([shown]);
      expect((await made.engine.transactions.list(applicationId)).data).toMatchObject([shown]);
      const balances = await made.engine.vaults.balances(
        made.tenant.applicationId,
        made.tenant.users[0]?.userId ?? "",
      );
      expect(balances.data).toMatchObject([shown]);
      expect((await made.engine.operator.verify()).problems).toEqual([]);
    },
  );

  it.for([
    ["12.345", "validation_failed"],
    ["0.5", "validation_failed"],
    ["", "validation_failed"],
    [".5", "validation_failed"],
    ["5.", "validation_failed"],
    ["01", "validation_failed"],
    ["-1", "validation_failed"],
    ["1e3", "validation_failed"],
    ["1,5", "validation_failed"],
    [12.5, "validation_failed"],
    [null, "validation_failed"],
    ["0", "amount_out_of_range"],
    ["9223372036854775808", "amount_out_of_range"],
  ] as const)(
    "%s is refused for a token in whole units",
    async ([amountDecimal, code], { made }) => {
      const assetId = await tokenOf(made, { decimals: 2, quantum: 100n });
      const issues = { "/users/0/mints/0/amountDecimal": code };
      expect(await refusal(mintFields(made, { assetId, amountDecimal }))).toEqual({ code, issues });
    },
  );

  it("is refused with an amount, and counts tokens of every standard; only ERC-721 needs no amount", async ({
    made,
  }) => {
    const { erc20, erc721, erc1155 } = made.assets;
    const refused = (field: string) => ({
      code: "validation_failed",
      issues: { [`/users/0/mints/0/${field}`]: "validation_failed" },
    });
    const both = { assetId: erc20, amount: 1, amountDecimal: "1" };
    expect(await refusal(mintFields(made, both))).toEqual(refused("amountDecimal"));
    const item = { assetId: erc1155, tokenId: "1" };
    expect((await mintFields(made, { ...item, amountDecimal: "12" })).vaults).toMatchObject([
      { amount: 12n },
    ]);
    expect(await refusal(mintFields(made, { ...item, amountDecimal: "1.5" }))).toEqual(
      refused("amountDecimal"),
    );
    const card = { assetId: erc721, tokenId: "7" };
    expect((await mintFields(made, { ...card, amountDecimal: "1" })).vaults).toMatchObject([
      { amount: 1n },
    ]);
    expect(
      await refusal(mintFields(made, { ...card, tokenId: "8", amountDecimal: "2" })),
    ).toMatchObject({
      code: "erc721_amount_not_one",
    });
    expect(await refusal(mintFields(made, item))).toEqual(refused("amount"));
    expect(await refusal(mintFields(made, { assetId: erc20 }))).toEqual(refused("amount"));
    expect((await mintFields(made, { assetId: erc721, tokenId: "1" })).vaults).toMatchObject([
      { amount: 1n },
    ]);
  });

  it("counts against the supply cap, reports its field, and repeats with its key", async ({
    made,
  }) => {
    const assetId = await tokenOf(made, { decimals: 1, quantum: 1n, supplyCap: 130n });
    const once = { idempotencyKey: "order" };
    const first = await mintFields(made, { assetId, amountDecimal: "12.5" }, once);
    expect(await mintFields(made, { assetId, amount: 125 }, once)).toMatchObject({
      replayed: true,
      mintId: first.mintId,
    });
    expect(await refusal(mintFields(made, { assetId, amountDecimal: "0.6" }))).toEqual({
      code: "supply_cap_exceeded",
      issues: { "/users/0/mints/0/amountDecimal": "supply_cap_exceeded" },
    });
  });

  it("is the inverse of the shown amount for every token", () => {
    const token = fc.record({
      decimals: fc.integer({ min: 0, max: 80 }),
      quantum: fc.bigInt({ min: 1n, max: 1n << 127n }),
    });
    fc.assert(
      fc.property(token, fc.bigInt({ min: 1n, max: (1n << 63n) - 1n }), (units, amount) => {
        const text = decimalAmount(amount, units);
        expect(text).toMatch(/^(0|[1-9]\d*)(\.\d*[1-9])?$/);
        expect(quantizedAmount(text, units)).toBe(amount);
      }),
    );
  });
});

const BINARY = { keyEncoding: "buffer", valueEncoding: "buffer" } as const;
const CONTRACT = `0x${"c0".repeat(20)}` as const;

/** An ERC-721 asset that the engine numbers from an id on. */
async function numbered(
  { engine, tenant }: Fixture,
  firstTokenId: bigint,
  more: object = {},
): Promise<Uuid> {
  const names = {
    name: "Numbered",
    symbol: "NUM",
    contractAddress: CONTRACT,
    applicationId: tenant.applicationId,
  };
  const { assetId } = await engine.assets.add({
    standard: "erc721",
    ...names,
    firstTokenId,
    ...more,
  });
  await engine.operator.recordRegistered(assetId);
  return assetId;
}

const MODE = { dataAvailabilityMode: "validium" } as const;

function mintTo(made: Fixture, ...mints: object[]) {
  const users = [
    { userId: made.tenant.users[0]?.userId, mints: mints.map((mint) => ({ ...MODE, ...mint })) },
  ];
  return made.engine.mint(made.tenant.principal, { users } as unknown);
}

const idsOf = (result: { readonly vaults: readonly { readonly tokenId: bigint | null }[] }) =>
  result.vaults.map(({ tokenId }) => tokenId);

describe("a mint by quantity", () => {
  it("mints the next ids, in the order of the request, and the reply names them", async ({
    made,
  }) => {
    const { engine, tenant, assets } = made;
    const assetId = await numbered(made, 100n);
    const [alice, bob] = tenant.users;
    const first = await engine.mint(tenant.principal, {
      users: [
        {
          userId: alice?.userId,
          mints: [
            { ...MODE, assetId, quantity: 3 },
            mintOf(assets.erc721, 7),
            { ...MODE, assetId },
            mintOf(assets.erc20, "", 5),
          ],
        },
        { userId: bob?.userId, mints: [{ ...MODE, assetId, quantity: 2 }] },
      ],
    } as unknown);
    expect(idsOf(first)).toEqual([100n, 101n, 102n, 7n, 103n, null, 104n, 105n]);
    expect(first.vaults.map(({ userId }) => userId === bob?.userId)).toEqual([
      ...Array(6).fill(false),
      true,
      true,
    ]);
    expect(first.transactions.map(({ userIndex, mintIndex }) => [userIndex, mintIndex])).toEqual([
      ...[0, 1, 2, 3, 4, 5].map((at) => [0, at]),
      [1, 0],
      [1, 1],
    ]);
    expect(idsOf(await mintTo(made, { assetId, quantity: 1 }))).toEqual([106n]);
    expect(await engine.assets.get(tenant.applicationId, assetId)).toMatchObject({
      nextTokenId: 107n,
      minted: 7n,
    });
    expect(
      idsOf({ vaults: (await engine.mints.get(tenant.applicationId, first.mintId)).vaults }),
    ).toEqual(idsOf(first));
    expect((await engine.operator.verify()).problems).toEqual([]);
  });

  it("repeats and skips no id, with concurrent requests and after a restart", async () => {
    const store = memory();
    const made = await fixture({ store });
    const { tenant } = made;
    const assetId = await numbered(made, 1n);
    const mintMany = async (engine: Engine, principal: Principal) => {
      const sizes = Array.from({ length: 60 }, (_, i) => 1 + ((i * 7) % 13));
      const results = await Promise.all(
        sizes.map((quantity, i) =>
          engine.mint(principal, {
            users: [
              {
                userId: tenant.users[i % OWNERS.length]?.userId,
                mints: [{ ...MODE, assetId, quantity }],
              },
            ],
          } as unknown),
        ),
      );
      for (const [i, result] of results.entries()) {
        const ids = idsOf(result);
        expect(ids).toEqual(
          Array.from({ length: sizes[i] as number }, (_, j) => (ids[0] as bigint) + BigInt(j)),
        );
      }
      return results.flatMap(idsOf) as bigint[];
    };
    const before = await mintMany(made.engine, tenant.principal);
    await made.engine.operator.seal("validium");
    await made.engine.close();
    await using again = await openTest(store);
    const after = await mintMany(again, tenant.principal);
    const ids = [...before, ...after].sort((a, b) => (a < b ? -1 : 1));
    expect(ids).toEqual(ids.map((_, i) => BigInt(i + 1)));
    expect((await again.operator.verify()).problems).toEqual([]);
  });

  it("continues after the ids of L1's history once the store adopts that", async () => {
    const store = memory();
    const made = await fixture({ store });
    const { tenant } = made;
    const assetId = await numbered(made, 1n);
    await made.engine.close();
    const copy = memory();
    await store.open();
    await copy.batch(
      (await store.iterator(BINARY).all()).map(([key, value]) => ({ type: "put", key, value })),
      BINARY,
    );
    await store.close();
    const mint = (engine: Engine, quantity: number) =>
      engine.mint(tenant.principal, {
        users: [{ userId: tenant.users[0]?.userId, mints: [{ ...MODE, assetId, quantity }] }],
      } as unknown);
    await using theirs = await openTest(store);
    await using ours = await openTest(copy);
    await mint(theirs, 5);
    await mint(ours, 2);
    await theirs.operator.seal("validium");
    await ours.operator.seal("validium");
    const sealed = await theirs.batches.getSealed("validium", 0);
    const foreign = await committed(theirs, "validium", 0, 10n);
    expect((await refusal(hear(ours, foreign))).code).toBe("history_diverged");
    await ours.operator.adopt([{ mode: "validium", first: 0, batches: [sealed] }]);
    expect(idsOf(await mint(ours, 2))).toEqual([6n, 7n]);
    expect((await ours.operator.verify()).problems).toEqual([]);
  });

  it("repeats with its idempotency key and the same ids, and uses none for a refused request", async ({
    made,
  }) => {
    const { engine, tenant, assets } = made;
    const assetId = await numbered(made, 5n);
    const request = {
      users: [{ userId: tenant.users[0]?.userId, mints: [{ ...MODE, assetId, quantity: 3 }] }],
    };
    const once = { idempotencyKey: "order" };
    const first = await engine.mint(tenant.principal, request as unknown, once);
    const again = await engine.mint(tenant.principal, request as unknown, once);
    expect(again).toMatchObject({ replayed: true, mintId: first.mintId });
    expect(idsOf(again)).toEqual([5n, 6n, 7n]);
    const other = { users: [{ ...request.users[0], mints: [{ ...MODE, assetId, quantity: 4 }] }] };
    expect((await refusal(engine.mint(tenant.principal, other as unknown, once))).code).toBe(
      "idempotency_key_reused",
    );
    await mintTo(made, mintOf(assets.erc721, 1));
    const refused = mintTo(made, { assetId, quantity: 10 }, mintOf(assets.erc721, 1));
    expect(await refusal(refused)).toEqual({
      code: "token_already_minted",
      issues: { "/users/0/mints/1/mintingBlob": "token_already_minted" },
    });
    expect(idsOf(await mintTo(made, { assetId, quantity: 2 }))).toEqual([8n, 9n]);
  });

  it("spells ids as the asset's scheme does, and stops before 2^256", async ({ engine, made }) => {
    const assetId = await numbered(made, (1n << 64n) - 1n, { mintingBlobScheme: "imx" });
    const { vaults } = await mintTo(made, { assetId, quantity: 2 });
    const ids = [(1n << 64n) - 1n, 1n << 64n];
    expect(vaults.map(({ mintingBlob }) => mintingBlob)).toEqual(
      ids.map((id) => mintingBlobOf(`{${id}}:{}`)),
    );
    expect((await engine.operator.verify()).problems).toEqual([]);
  });

  it("counts its number of mints: against the request's limit, the supply cap and the key's quota", async () => {
    const made = await fixture({ limits: { mintsPerRequest: 10 } });
    const { engine, tenant } = made;
    await using _ = engine;
    const assetId = await numbered(made, 1n, { supplyCap: 12n });
    const of = (quantity: number) => ({ assetId, quantity });
    expect(await refusal(mintTo(made, of(9), of(2)))).toEqual({
      code: "batch_too_large",
      issues: { "/users": "batch_too_large" },
    });
    expect(await refusal(mintTo(made, of(2 ** 40)))).toMatchObject({ code: "batch_too_large" });
    await mintTo(made, of(5), of(5));
    expect(await refusal(mintTo(made, of(3)))).toMatchObject({ code: "supply_cap_exceeded" });
    const { secret } = await engine.keys.issue(tenant.applicationId, { mintQuota: 1n });
    const poor = await engine.keys.authenticate(secret);
    const users = (quantity: number) => ({
      users: [{ userId: tenant.users[0]?.userId, mints: [{ ...MODE, ...of(quantity) }] }],
    });
    expect(await refusal(engine.mint(poor, users(2) as unknown))).toEqual({
      code: "quota_exceeded",
      issues: { "": "quota_exceeded" },
    });
    expect(await engine.mints.check(tenant.principal, users(2) as unknown)).toEqual({
      users: 1,
      mints: 2,
    });
    expect(idsOf(await engine.mint(poor, users(1) as unknown))).toEqual([11n]);
    expect((await all(engine.keys.list(tenant.applicationId))).at(-1)).toMatchObject({
      mintsUsed: 1n,
    });
  });

  it.for([
    ["an id of a numbered asset", { tokenId: "5" }, "tokenId"],
    ["a minting blob of a numbered asset", { mintingBlob: "31" }, "mintingBlob"],
    ["a quantity beside an id", { quantity: 1, tokenId: "5" }, "quantity"],
    ["a quantity of 0", { quantity: 0 }, "quantity"],
    ["half a token", { quantity: 1.5 }, "quantity"],
    ["text", { quantity: "2" }, "quantity"],
  ] as const)("refuses %s", async ([, fields, field], { made }) => {
    const assetId = await numbered(made, 1n);
    expect(await refusal(mintTo(made, { assetId, ...fields }))).toEqual({
      code: "validation_failed",
      issues: { [`/users/0/mints/0/${field}`]: "validation_failed" },
    });
    expect(idsOf(await mintTo(made, { assetId }))).toEqual([1n]);
  });

  it("is refused for assets whose mints name their ids, and only ERC-721 assets can be numbered", async ({
    made,
  }) => {
    const { assets } = made;
    for (const assetId of Object.values(assets)) {
      expect(await refusal(mintTo(made, { assetId, amount: 1, quantity: 1 }))).toEqual({
        code: "validation_failed",
        issues: { "/users/0/mints/0/quantity": "validation_failed" },
      });
    }
    expect((await refusal(numbered(made, 1n, { standard: "erc1155" }))).code).toBe(
      "validation_failed",
    );
    expect((await refusal(numbered(made, 1n << 64n))).code).toBe("validation_failed");
  });
});
