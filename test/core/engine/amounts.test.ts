import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { decimalAmount, quantizedAmount } from "../../../core/protocol/quantized.ts";
import { type Fixture, fixture, knownAsset, refusal } from "./fixture.ts";

/** Mints one entry of these fields. */
function mintFields({ engine, tenant }: Fixture, fields: object, options = {}) {
  const entry = { dataAvailabilityMode: "validium", ...fields };
  return engine.mint(tenant.principal, { users: [{ userId: tenant.users[0]?.userId, mints: [entry] }] }, options);
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
    ["12.5", 18, 10n ** 16n, 1250n],
    ["12.50", 2, 1n, 1250n],
    ["0.000000000000000001", 18, 1n, 1n],
    ["7", 0, 1n, 7n],
    ["7.000", 0, 1n, 7n],
    ["1000000", 6, 1_000_000n, 1_000_000n],
    ["9.223372036854775807", 18, 1n, (1n << 63n) - 1n],
  ] as const)("%s with %i decimals and quantum %s is %s units", async (amountDecimal, decimals, quantum, units) => {
    const made = await fixture();
    await using _ = made.engine;
    const assetId = await tokenOf(made, { decimals, quantum });
    const { vaults } = await mintFields(made, { assetId, amountDecimal });
    expect(vaults).toMatchObject([{ amount: units, quantum, decimals }]);
    const { data } = await made.engine.transactions.list(made.tenant.applicationId);
    expect(data).toMatchObject([{ amount: units, quantum, decimals }]);
    const balances = await made.engine.vaults.balances(made.tenant.applicationId, made.tenant.users[0]?.userId ?? "");
    expect(balances.data).toMatchObject([{ amount: units, quantum, decimals }]);
    expect((await made.engine.operator.verify()).problems).toEqual([]);
  });

  it.each([
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
  ] as const)("%s is refused for a token in whole units", async (amountDecimal, code) => {
    const made = await fixture();
    await using _ = made.engine;
    const assetId = await tokenOf(made, { decimals: 2, quantum: 100n });
    const issues = { "/users/0/mints/0/amountDecimal": code };
    expect(await refusal(mintFields(made, { assetId, amountDecimal }))).toEqual({ code, issues });
  });

  it("is refused with an amount, and counts tokens of every standard; only ERC-721 needs no amount", async () => {
    const made = await fixture();
    const { erc20, erc721, erc1155 } = made.assets;
    await using _ = made.engine;
    const refused = (field: string) => ({
      code: "validation_failed",
      issues: { [`/users/0/mints/0/${field}`]: "validation_failed" },
    });
    const both = { assetId: erc20, amount: 1, amountDecimal: "1" };
    expect(await refusal(mintFields(made, both))).toEqual(refused("amountDecimal"));
    const item = { assetId: erc1155, tokenId: "1" };
    expect((await mintFields(made, { ...item, amountDecimal: "12" })).vaults).toMatchObject([{ amount: 12n }]);
    expect(await refusal(mintFields(made, { ...item, amountDecimal: "1.5" }))).toEqual(refused("amountDecimal"));
    const card = { assetId: erc721, tokenId: "7" };
    expect((await mintFields(made, { ...card, amountDecimal: "1" })).vaults).toMatchObject([{ amount: 1n }]);
    expect(await refusal(mintFields(made, { ...card, tokenId: "8", amountDecimal: "2" }))).toMatchObject({
      code: "erc721_amount_not_one",
    });
    expect(await refusal(mintFields(made, item))).toEqual(refused("amount"));
    expect(await refusal(mintFields(made, { assetId: erc20 }))).toEqual(refused("amount"));
    expect((await mintFields(made, { assetId: erc721, tokenId: "1" })).vaults).toMatchObject([{ amount: 1n }]);
  });

  it("counts against the supply cap, reports its field, and repeats with its key", async () => {
    const made = await fixture();
    await using _ = made.engine;
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
