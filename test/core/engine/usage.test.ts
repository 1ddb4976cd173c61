import { expect } from "vitest";
import { knownAsset, mintOf, refusal, requestOf, START } from "./fixture.ts";
import { it } from "./it.ts";

const DAY = 86_400_000;

it("counts the transactions of each period like a count one by one", async ({
  engine,
  tenant,
  assets,
  clock,
}) => {
  const { applicationId } = tenant;
  const times: number[] = [];
  for (let i = 0; i < 40; i++) {
    clock.now = START + Math.floor((i * i * DAY) / 97);
    const count = 1 + (i % 4);
    const mints = Array.from({ length: count }, (_one, j) => mintOf(assets.erc721, 100 * i + j));
    await engine.mint(tenant.principal, requestOf(tenant.users[i % 2], ...mints));
    times.push(...Array<number>(count).fill(clock.now));
  }
  for (const interval of ["hour", "day", "month"] as const) {
    const until = clock.now + 1;
    const since = interval === "hour" ? until - 90 * 3_600_000 : START - 1;
    const { periods, mints, transactions } = await engine.transactions.usage(applicationId, {
      since,
      until,
      interval,
    });
    expect([mints, transactions]).toEqual([BigInt(times.length), times.length]);
    expect([periods[0]?.since, periods.at(-1)?.until]).toEqual([since, until]);
    for (const [i, period] of periods.entries()) {
      expect(period.since).toBe(i === 0 ? since : periods[i - 1]?.until);
      expect(period.transactions).toBe(
        times.filter((time) => time >= period.since && time < period.until).length,
      );
    }
  }
  expect((await engine.transactions.usage(applicationId)).periods).toHaveLength(30);
});

it("shows each key's share, and nothing of another application", async ({ engine, tenant }) => {
  const { applicationId } = await engine.applications.create({ name: "other" });
  const assetId = await knownAsset(engine, "erc20");
  await engine.assets.enable(tenant.applicationId, assetId);
  const { key, secret } = await engine.keys.issue(tenant.applicationId, { mintQuota: 5n });
  const second = await engine.keys.authenticate(secret);
  await engine.mint(
    second,
    requestOf(tenant.users[0], mintOf(assetId, "", 1), mintOf(assetId, "", 2)),
  );
  const { keys } = await engine.transactions.usage(tenant.applicationId);
  expect(keys).toMatchObject([
    { mintsUsed: 0n, mintQuota: null },
    { keyId: key.keyId, mintsUsed: 2n, mintQuota: 5n, revokedAt: null },
  ]);
  expect(await engine.transactions.usage(applicationId)).toMatchObject({
    mints: 0n,
    transactions: 0,
    keys: [],
  });
});

it.for([
  [{ interval: "week" }],
  [{ since: 5, until: 5 }],
  [{ since: -1 }],
  [{ since: START, until: START + 200 * DAY }],
  [{ since: 0.5 }],
])("refuses %j", async ([options], { engine, tenant }) => {
  expect(
    (await refusal(engine.transactions.usage(tenant.applicationId, options as object))).code,
  ).toBe("validation_failed");
});

it("counts what revoked keys have minted, and no revoked key as in use", async ({
  engine,
  tenant,
  assets,
}) => {
  const { applicationId } = tenant;
  const before = await engine.transactions.usage(applicationId);
  const { key, secret } = await engine.keys.issue(applicationId);
  const principal = await engine.keys.authenticate(secret);
  await engine.mint(principal, requestOf(tenant.users[0], mintOf(assets.erc20, "", 1)));
  await engine.keys.revoke(key.keyId);
  for (let i = 0; i < 3; i++)
    await engine.keys.revoke((await engine.keys.issue(applicationId)).key.keyId);
  const { mints, keysInUse, keys } = await engine.transactions.usage(applicationId);
  expect([mints - before.mints, keysInUse]).toEqual([1n, before.keysInUse]);
  expect(keys.filter(({ revokedAt }) => revokedAt !== null)).toHaveLength(4);
});
