import { describe, expect, it } from "vitest";
import type { Engine, Mode } from "../../../core/index.ts";
import { type Fixture, fixture, memory, mintOf, openTest, refusal, requestOf } from "./fixture.ts";
import { committed, HOME } from "./l1-fixture.ts";

const LIMITS = { mintsPerRequest: 4, uncommittedVaults: 6 };

let next = 0;
const swords = ({ assets, tenant }: Fixture, count: number, mode: Mode) =>
  requestOf(
    tenant.users[0],
    ...Array.from({ length: count }, () => mintOf(assets.erc721, `${next++}`, 1, mode)),
  );

/** The count by the batches as anyone can read them. */
async function counted(engine: Engine): Promise<number> {
  const { data } = await engine.batches.list({ limit: 100 });
  const waiting = data.filter(({ status }) => !["settled", "finalized"].includes(status));
  return waiting.reduce((sum, { vaultCount }) => sum + vaultCount, 0);
}

describe("the bound on vaults that L1 has not committed", () => {
  it("refuses a mint beyond it, over both modes, and accepts a mint that fits", async () => {
    const fix = await fixture({ limits: LIMITS });
    await using engine = fix.engine;
    const { principal } = fix.tenant;
    await engine.mint(principal, swords(fix, 3, "validium"));
    await engine.operator.seal("validium");
    await engine.mint(principal, swords(fix, 2, "zk-rollup"));
    expect(engine.batches.uncommittedVaults()).toBe(5);
    expect((await refusal(engine.mint(principal, swords(fix, 2, "validium")))).code).toBe(
      "backpressure",
    );
    expect(engine.batches.uncommittedVaults()).toBe(5);
    await engine.mint(principal, swords(fix, 1, "validium"));
    expect(engine.batches.uncommittedVaults()).toBe(6);
    expect((await refusal(engine.mint(principal, swords(fix, 1, "zk-rollup")))).code).toBe(
      "backpressure",
    );
  });

  it("returns a repeated mint even when full", async () => {
    const fix = await fixture({ limits: LIMITS });
    await using engine = fix.engine;
    const { principal } = fix.tenant;
    const request = swords(fix, 4, "validium");
    const { mintId } = await engine.mint(principal, request, { idempotencyKey: "once" });
    expect((await refusal(engine.mint(principal, swords(fix, 3, "validium")))).code).toBe(
      "backpressure",
    );
    expect(await engine.mint(principal, request, { idempotencyKey: "once" })).toMatchObject({
      mintId,
      replayed: true,
    });
  });

  it("frees capacity after a commit on L1, and loses it in a reorganisation", async () => {
    const fix = await fixture({ limits: LIMITS });
    await using engine = fix.engine;
    const { principal } = fix.tenant;
    for (const mode of ["validium", "zk-rollup"] as const) {
      await engine.mint(principal, swords(fix, 3, mode));
      await engine.operator.seal(mode);
    }
    expect((await refusal(engine.mint(principal, swords(fix, 1, "validium")))).code).toBe(
      "backpressure",
    );
    await engine.operator.recordEvents(HOME, [await committed(engine, "validium", 0, 7n)], 8n);
    expect(engine.batches.uncommittedVaults()).toBe(3);
    await engine.mint(principal, swords(fix, 3, "validium"));
    await engine.operator.recordReorg(HOME, 7n);
    expect(engine.batches.uncommittedVaults()).toBe(9);
    expect((await refusal(engine.mint(principal, swords(fix, 1, "validium")))).code).toBe(
      "backpressure",
    );
    await engine.operator.recordEvents(HOME, [await committed(engine, "validium", 0, 7n)], 8n);
    expect(engine.batches.uncommittedVaults()).toBe(6);
  });

  it("counts the same after a restart, with batches open, sealed, partly void, committed and final", async () => {
    const limits = {
      ...LIMITS,
      uncommittedVaults: 1_000,
      batchVaults: { validium: 3, "zk-rollup": 2 },
    };
    const fix = await fixture({ limits });
    const { database, clock } = fix;
    const { principal } = fix.tenant;
    for (let round = 0; round < 4; round++) {
      await fix.engine.mint(principal, swords(fix, 4, "validium"));
      await fix.engine.mint(principal, swords(fix, 3, "zk-rollup"));
    }
    await fix.engine.operator.recordEvents(
      HOME,
      [await committed(fix.engine, "validium", 0, 7n)],
      7n,
    );
    await fix.engine.operator.recordFinalized(HOME, 7n);
    await fix.engine.operator.recordEvents(
      HOME,
      [await committed(fix.engine, "zk-rollup", 0, 8n)],
      9n,
    );
    await fix.engine.operator.voidSlots("validium", 1, [
      { firstSlot: 1, count: 1, failure: "refused" },
    ]);
    const before = fix.engine.batches.uncommittedVaults();
    expect(before).toBe(16 - 3 + 12 - 2);
    expect(before).toBe(await counted(fix.engine));
    await fix.engine.close();
    await using engine = await openTest(database, {
      clock: clock.read,
      limits: { ...limits, uncommittedVaults: before },
    });
    expect(engine.batches.uncommittedVaults()).toBe(before);
    expect((await refusal(engine.mint(principal, swords(fix, 1, "validium")))).code).toBe(
      "backpressure",
    );
    await engine.operator.recordEvents(HOME, [await committed(engine, "zk-rollup", 1, 10n)], 10n);
    await engine.mint(principal, swords(fix, 2, "validium"));
    expect(engine.batches.uncommittedVaults()).toBe(before);
  });

  it("is off without the limit, and never below the largest request", async () => {
    const fix = await fixture({ limits: { mintsPerRequest: 4 } });
    await using engine = fix.engine;
    for (let i = 0; i < 4; i++) await engine.mint(fix.tenant.principal, swords(fix, 4, "validium"));
    expect(engine.limits.uncommittedVaults).toBeNull();
    const tight = openTest(memory(), { limits: { mintsPerRequest: 4, uncommittedVaults: 3 } });
    expect(await refusal(tight)).toMatchObject({ code: "validation_failed" });
  });
});

describe("the bound on a mode's places", () => {
  it("refuses a mint of that mode beyond it, sealed and void vaults counted, and takes the other's", async () => {
    const fix = await fixture({ limits: { places: 5 } });
    await using engine = fix.engine;
    const { principal } = fix.tenant;
    await engine.mint(principal, swords(fix, 3, "zk-rollup"));
    await engine.operator.seal("zk-rollup");
    const run = { firstSlot: 0, count: 1, failure: "refused" };
    await engine.operator.voidSlots("zk-rollup", 0, [run]);
    expect(engine.batches.placesLeft("zk-rollup")).toBe(2);
    expect((await refusal(engine.mint(principal, swords(fix, 3, "zk-rollup")))).code).toBe(
      "places_exhausted",
    );
    await engine.mint(principal, swords(fix, 2, "zk-rollup"));
    expect(engine.batches.placesLeft("zk-rollup")).toBe(0);
    await engine.mint(principal, swords(fix, 5, "validium"));
    expect((await engine.operator.verify()).problems).toEqual([]);
  });

  it("is below the end of the index of tokens", async () => {
    const { engine } = await fixture();
    await using _ = engine;
    expect(engine.limits.places).toBe(1_800_000_000);
    expect((await refusal(openTest(memory(), { limits: { places: 1_800_000_001 } }))).code).toBe(
      "validation_failed",
    );
  });
});
