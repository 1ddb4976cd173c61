import { validate, version } from "uuid";
import { expect, it, test } from "vitest";
import { sealingOf } from "../../../core/settlement/settler.ts";
import { timeUuid } from "../../../core/store/binary.ts";
import { withdrawOne } from "../../one-withdrawal.ts";
import { fixture, mintOf, openTest, requestOf, START, TestClock } from "./fixture.ts";

const HOUR = 3_600_000;

/**
 * An engine with one mint under an idempotency key, opened again by a system clock that is off by
 * so many hours.
 */
async function reopened(hours: number) {
  const { engine, database, tenant, assets } = await fixture();
  const request = requestOf(tenant.users[0], mintOf(assets.erc20, "", 5));
  const again = { idempotencyKey: "once" };
  const { mintId } = await engine.mint(tenant.principal, request, again);
  await engine.close();
  const [clock, monotonic] = [new TestClock(), new TestClock()];
  clock.now += hours * HOUR;
  const times = { clock: clock.read, monotonic: monotonic.read };
  const opened = await openTest(database, { ...times, clockAheadMs: 12 * HOUR });
  const forget = () =>
    opened.operator.forgetIdempotencyKeys(Math.floor(opened.operator.reachedTime()) - 24 * HOUR);
  const repeated = async () =>
    (await opened.mint(tenant.principal, request, again)).mintId === mintId;
  const pass = (ms: number) => {
    clock.now += ms;
    monotonic.now += ms;
  };
  return { engine: opened, database, tenant, assets, clock, monotonic, forget, repeated, pass };
}

test.each([25, -1, 400])(
  "a clock that is off by %i hours causes no double mint, and is reported",
  async (hours) => {
    const { engine, forget, repeated } = await reopened(hours);
    await using _ = engine;
    expect(engine.operator.clockFault()).toMatch(
      hours > 0 ? `${hours} hours ahead` : "60 minutes behind",
    );
    expect(await forget()).toBe(0);
    expect(await repeated()).toBe(true);
  },
);

test("an idempotency key expires after its hours of running time", async () => {
  const { engine, forget, repeated, pass } = await reopened(3);
  await using _ = engine;
  expect(engine.operator.clockFault()).toBeNull();
  pass(24 * HOUR - 1);
  expect(await forget()).toBe(0);
  expect(await repeated()).toBe(true);
  pass(2);
  expect(await forget()).toBe(1);
  expect(await repeated()).toBe(false);
});

test("a clock that jumps while the engine runs expires nothing either", async () => {
  const { engine, forget, clock, pass } = await reopened(0);
  await using _ = engine;
  clock.now += 25 * HOUR;
  expect(await forget()).toBe(0);
  expect(engine.operator.clockFault()).toMatch("25 hours ahead");
  clock.now -= 25 * HOUR;
  expect(engine.operator.clockFault()).toBeNull();
  pass(25 * HOUR);
  expect(await forget()).toBe(1);
});

test("no entry has the time of a clock too far ahead, so a second restart expires nothing either", async () => {
  const { engine, database, tenant, assets, clock } = await reopened(25);
  await engine.mint(tenant.principal, requestOf(tenant.users[0], mintOf(assets.erc20, "", 1)));
  expect(engine.batches.getOpen("validium").timestamps.open).toBe(START);
  await engine.close();
  const times = { clock: clock.read, monotonic: new TestClock().read };
  await using again = await openTest(database, { ...times, clockAheadMs: 12 * HOUR });
  expect(again.operator.reachedTime()).toBe(START);
  expect((await again.operator.verify()).problems).toEqual([]);
});

test("a clock after a long pause is accepted with a larger limit, or without one", async () => {
  const { engine, database, clock } = await reopened(400);
  await engine.close();
  for (const bound of [{ clockAheadMs: 401 * HOUR }, {}]) {
    const times = { clock: clock.read, monotonic: new TestClock().read };
    const opened = await openTest(database, { ...times, ...bound });
    expect(opened.operator.clockFault()).toBeNull();
    await opened.applications.create({ name: "later" });
    expect(opened.operator.clockFault()).toBeNull();
    await opened.close();
  }
});

test.each([25, 0, -1])(
  "a key expires in its time though the clock is off by %i hours",
  async (hours) => {
    const { engine, tenant, assets, pass } = await reopened(hours);
    await using _ = engine;
    const { secret } = await engine.keys.issue(tenant.applicationId, {
      expiresAt: START + HOUR / 2,
    });
    const authenticated = async () => engine.keys.authenticate(secret);
    const principal = await authenticated();
    const mint = () =>
      engine.mint(principal, requestOf(tenant.users[0], mintOf(assets.erc20, "", 1)));
    pass(HOUR / 2 - 1);
    await mint();
    await authenticated();
    pass(1);
    for (const refused of [mint, authenticated]) {
      await expect(refused()).rejects.toMatchObject({ code: "credentials_expired" });
    }
  },
);

test.each([25, 0])(
  "a deadline is judged in its time though the clock is off by %i hours",
  async (hours) => {
    const { engine, tenant, pass } = await reopened(hours);
    await using _ = engine;
    const codeOf = async (seconds: number) => {
      const deadline = BigInt(START / 1000 + seconds);
      const vaults = [{ vaultId: 0n, withdrawnBefore: 0n, quantity: 1n }];
      const asked = { vaults, deadline, signature: "0x12" } as const;
      return withdrawOne(engine, tenant.principal, asked).catch(({ code }) => code);
    };
    const days = 30 * 24 * 3_600;
    expect(await Promise.all([59, 60, days, days + 1].map(codeOf))).toEqual([
      "deadline_invalid",
      "signature_invalid",
      "signature_invalid",
      "deadline_invalid",
    ]);
    pass(HOUR);
    expect(await Promise.all([3_659, 3_660].map(codeOf))).toEqual([
      "deadline_invalid",
      "signature_invalid",
    ]);
  },
);

test.each([25, 0, -1])(
  "a batch is sealed by age though the clock is off by %i hours",
  async (hours) => {
    const { engine, clock, monotonic, pass } = await reopened(hours);
    await using _ = engine;
    const sealDue = sealingOf(engine, { maxAgeMs: 60_000 }, clock.read, monotonic.read);
    let sealed = await sealDue();
    pass(59_999);
    sealed += await sealDue();
    pass(1);
    sealed += await sealDue();
    expect(sealed).toBe(1);
  },
);

it("is a UUID of version 7 that begins with its time, and never the same twice", () => {
  const time = 0x0123_4567_89ab;
  const ids = Array.from({ length: 2_000 }, () => timeUuid(time));
  expect(new Set(ids).size).toBe(ids.length);
  for (const id of ids) {
    expect(validate(id) && version(id) === 7).toBe(true);
    expect(id.startsWith("01234567-89ab-7")).toBe(true);
  }
});
