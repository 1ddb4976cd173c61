import { v7 as uuidv7 } from "uuid";
import { expect, test, vi } from "vitest";
import { EventLoopTurns } from "../../server/http/turns.ts";
import { createWorld } from "./fixture.ts";

test("charges the skip of a webhook's event for each page of events before it", async () => {
  await using world = await createWorld({
    rateLimits: { key: { units: 1_000, windowSeconds: 1000 } },
    now: () => 0,
  });
  const { engine, applicationId, erc20 } = world;
  const { webhook } = await engine.webhooks.create(applicationId, {
    url: "http://127.0.0.1:9/hook",
    types: ["asset.disabled"],
  });
  await engine.operator.webhooks.recordDisabled(webhook.webhookId, "gone");
  const principal = await engine.keys.authenticate(world.key);
  const { assetId } = world.erc1155;
  const mint = { mintingBlob: "0x37", assetId, amount: 1, dataAvailabilityMode: "validium" };
  const body = { users: [{ userId: world.users[0], mints: [mint] }] };
  await Promise.all(Array.from({ length: 700 }, () => engine.mint(principal, body as unknown)));
  await engine.assets.disable(applicationId, erc20.assetId);
  const sequence = webhook.delivered + 702;
  const skip = async () => {
    const path = `/api/v1/webhooks/${webhook.webhookId}/deliveries/${sequence}/skip`;
    const { status, body: skipped, headers } = await world.send("POST", path);
    expect({ status, delivered: skipped.delivered }).toEqual({ status: 200, delivered: sequence });
    return Number(/r=(\d+)/.exec(String(headers.ratelimit))?.[1]);
  };
  expect(await skip()).toBe(994);
  // A repetition looks at none.
  expect(await skip()).toBe(993);
});

test("charges lists for what they examine, and reads long ones in turns and one after another", async () => {
  await using world = await createWorld({
    rateLimits: { key: { units: 100_000, windowSeconds: 1000 } },
    now: () => 0,
  });
  const { engine, applicationId } = world;
  const ownerAddress = `0x${"99".repeat(20)}` as const;
  const players = Array.from({ length: 1_000 }, () => ({ ownerAddress, userId: uuidv7() }));
  const users = await engine.users.createAll(applicationId, players);
  const mint = {
    mintingBlob: "",
    assetId: world.erc20.assetId,
    amount: 1,
    dataAvailabilityMode: "validium",
  };
  const minted = await world.send("POST", "/api/v1/mint", {
    body: { users: users.slice(0, 100).map(({ userId }) => ({ userId, mints: [mint] })) },
  });
  expect(minted.status).toBe(200);
  const remaining = async () => {
    const { headers } = await world.send("GET", "/api/v1/limits");
    return Number(/r=(\d+)/.exec(String(headers.ratelimit))?.[1]);
  };
  const turn = vi.spyOn(EventLoopTurns.prototype, "turn");
  for (const path of ["transactions", "vaults", "withdrawals", "deposits"]) {
    const before = await remaining();
    turn.mockClear();
    const listed = await world.send("GET", `/api/v1/${path}?ownerAddress=${ownerAddress}&limit=1`);
    expect(listed.status).toBe(200);
    expect(before - (await remaining()), path).toBeGreaterThan(10);
    expect(turn.mock.calls.length, path).toBeGreaterThan(10);
  }
  const before = await remaining();
  const prepared = await world.send("POST", "/api/v1/withdrawals/prepare", {
    body: { ownerAddress, assetId: world.erc721.assetId },
  });
  expect(prepared.status).toBeGreaterThanOrEqual(400);
  expect(before - (await remaining())).toBeGreaterThan(10);
  const { userId } = users[0]!;
  for (const path of [`/api/v1/users/${userId}/vaults`, "/api/v1/transactions?limit=1"]) {
    const earlier = await remaining();
    await world.send("GET", path);
    expect(earlier - (await remaining()), path).toBe(2);
  }

  turn.mockRestore();

  // Long pages of one application follow each other: a shorter one waits for a longer one's end.
  const shorter = `0x${"98".repeat(20)}` as const;
  await engine.users.createAll(
    applicationId,
    Array.from({ length: 120 }, () => ({ ownerAddress: shorter, userId: uuidv7() })),
  );
  const ended: string[] = [];
  const page = async (owner: string) => {
    await world.send("GET", `/api/v1/transactions?ownerAddress=${owner}`);
    ended.push(owner);
  };
  const started = Promise.withResolvers<void>();
  const alone = vi.spyOn(EventLoopTurns.prototype, "alone");
  alone.mockImplementationOnce(function (this: EventLoopTurns, ...asked) {
    started.resolve();
    return this.alone(...asked);
  });
  const long = page(ownerAddress);
  await started.promise;
  await Promise.all([long, page(shorter)]);
  alone.mockRestore();
  expect(ended).toEqual([ownerAddress, shorter]);
});
