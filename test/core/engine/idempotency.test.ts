import fc from "fast-check";
import { describe, expect } from "vitest";
import { fixture, mintOf, refusal, requestOf } from "./fixture.ts";
import { it } from "./it.ts";

const HOUR = 3_600_000;

describe("an idempotency key", () => {
  it("answers like a plain model for any mints, repetitions and expiries", async () => {
    const step = fc.oneof(
      {
        weight: 4,
        arbitrary: fc.record({
          key: fc.integer({ min: 0, max: 5 }),
          amount: fc.integer({ min: 1, max: 2 }),
        }),
      },
      { weight: 1, arbitrary: fc.record({ wait: fc.integer({ min: 0, max: 3 }) }) },
      { weight: 1, arbitrary: fc.record({ forget: fc.integer({ min: 0, max: 3 }) }) },
    );
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 40 }), async (steps) => {
        const { engine, tenant, assets, clock } = await fixture();
        await using _ = engine;
        const known = new Map<
          number,
          { readonly time: number; readonly amount: number; readonly mintId: string }
        >();
        for (const one of steps) {
          if ("wait" in one) clock.now += one.wait * HOUR;
          else if ("forget" in one) {
            const before = clock.now - one.forget * HOUR;
            const due = [...known].filter(([, { time }]) => time < before);
            expect(await engine.operator.forgetIdempotencyKeys(before)).toBe(due.length);
            for (const [key] of due) known.delete(key);
          } else {
            const { key, amount } = one;
            const body = requestOf(tenant.users[0], mintOf(assets.erc20, "", amount));
            const minting = engine.mint(tenant.principal, body, { idempotencyKey: `${key}` });
            const earlier = known.get(key);
            if (earlier !== undefined && earlier.amount !== amount) {
              expect((await refusal(minting)).code).toBe("idempotency_key_reused");
              continue;
            }
            const { mintId, replayed } = await minting;
            expect(replayed).toBe(earlier !== undefined);
            if (earlier === undefined) known.set(key, { time: clock.now, amount, mintId });
            else expect(mintId).toBe(earlier.mintId);
          }
        }
        expect((await engine.operator.verify()).problems).toEqual([]);
      }),
      { numRuns: 25 },
    );
  });

  it("is used once even while keys expire during mints, in two runs and many steps", async ({
    made,
  }) => {
    const { engine, tenant, assets, clock } = made;
    const mint = (key: string) =>
      engine.mint(tenant.principal, requestOf(tenant.users[0], mintOf(assets.erc20, "", 1)), {
        idempotencyKey: key,
      });
    await Promise.all(Array.from({ length: 2_500 }, (__, i) => mint(`old ${i}`)));
    clock.now += HOUR;
    const [first, second, ...minted] = await Promise.all([
      engine.operator.forgetIdempotencyKeys(clock.now),
      engine.operator.forgetIdempotencyKeys(clock.now),
      ...Array.from({ length: 500 }, (__, i) => mint(`new ${i}`)),
    ]);
    expect(first + second).toBe(2_500);
    expect(minted.every(({ replayed }) => !replayed)).toBe(true);
    expect((await mint("new 7")).replayed).toBe(true);
    expect((await mint("old 7")).replayed).toBe(false);
    expect((await engine.operator.verify()).problems).toEqual([]);
  });

  it("expires no further than requested: a signal stops between steps, a bad time is refused", async ({
    made,
  }) => {
    const { engine, tenant, assets, clock } = made;
    await engine.mint(tenant.principal, requestOf(tenant.users[0], mintOf(assets.erc20, "", 1)), {
      idempotencyKey: "a",
    });
    clock.now += 1;
    const signal = AbortSignal.abort(new Error("enough"));
    await expect(engine.operator.forgetIdempotencyKeys(clock.now, { signal })).rejects.toThrow(
      "enough",
    );
    for (const before of [-1, 0.5, Number.NaN, Number.POSITIVE_INFINITY]) {
      expect((await refusal(engine.operator.forgetIdempotencyKeys(before))).code).toBe(
        "validation_failed",
      );
    }
    expect(await engine.operator.forgetIdempotencyKeys(clock.now)).toBe(1);
  });
});
