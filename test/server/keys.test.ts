import crypto from "node:crypto";
import { syncBuiltinESMExports } from "node:module";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { ENDPOINTS } from "../../server/routes/index.ts";
import { createWorld, entries, refusal, type World } from "./fixture.ts";

describe("the check of a key", () => {
  // Clocks are too coarse and too noisy to show what a comparison leaks. What is done is counted
  // instead: for every key, right or wrong and in whichever way, one hash of a secret and one
  // comparison of 32 bytes by node:crypto's timingSafeEqual, whose time does not depend on them.

  let world: World;
  const comparisons: number[] = [];
  const hashes: string[] = [];
  beforeAll(async () => {
    world = await createWorld();
    const { timingSafeEqual, hash } = crypto;
    vi.spyOn(crypto, "timingSafeEqual").mockImplementation((a, b) => {
      comparisons.push(a.byteLength);
      return timingSafeEqual(a, b);
    });
    vi.spyOn(crypto, "hash").mockImplementation((algorithm, data, options) => {
      hashes.push(algorithm);
      return hash(algorithm, data, options as "buffer");
    });
    syncBuiltinESMExports();
  });
  afterAll(async () => {
    vi.restoreAllMocks();
    syncBuiltinESMExports();
    await world[Symbol.asyncDispose]();
  });

  test("a key is checked in the same steps whether it is right, wrong at its first or last character, unknown or malformed", async () => {
    const { key, otherKey } = world;
    const [, , keyId = "", secret = ""] = key.split("_");
    const at = (position: number) =>
      key.slice(0, position) + (key[position] === "0" ? "1" : "0") + key.slice(position + 1);
    const first = key.length - secret.length;
    const wrong = [
      at(first),
      at(first + 63),
      at(key.length - 1),
      key.replace(keyId, "0".repeat(16)),
      key.replace("mm_test_", "mm_live_"),
      `mm_test_${keyId}_${otherKey.split("_")[3]}`,
      "x",
    ];
    for (const given of [key, ...wrong]) {
      comparisons.length = 0;
      hashes.length = 0;
      const answer = await world.send("GET", "/api/v1/limits", { key: given });
      expect([comparisons, hashes], given).toEqual([[32], ["sha256"]]);
      if (given === key) expect(answer.status).toBe(200);
      else expect(refusal(answer).code).toBe("credentials_invalid");
    }
  });
});

const HOUR = 3_600_000;

test("a server that listens forgets idempotency keys past their time, and no others", async () => {
  let now = Date.now() - 25 * HOUR;
  await using world = await createWorld({ clock: () => now });
  const [coin] = entries(world, 0);
  const mint = async (key: string, amount: number) => {
    const body = { users: [{ userId: world.users[0], mints: [{ ...coin, amount }] }] };
    return world.send("POST", "/api/v1/mint", { body, headers: { "Idempotency-Key": key } });
  };
  expect((await mint("old", 1)).status).toBe(200);
  now = Date.now() - 23 * HOUR;
  expect((await mint("young", 1)).status).toBe(200);
  now = Date.now();
  expect((await mint("old", 2)).body.code).toBe("idempotency_key_reused");
  await world.app.listen({ host: "127.0.0.1", port: 0 });
  await expect.poll(async () => (await mint("old", 2)).status).toBe(200);
  expect((await mint("young", 2)).body.code).toBe("idempotency_key_reused");
  expect((await mint("young", 1)).headers["idempotency-replayed"]).toBe("true");
  await world.app.close();
  expect((await world.engine.operator.verify()).problems).toEqual([]);
});

test("a stolen key hides no batch data and no proof, whatever it changes at the API", async () => {
  await using world = await createWorld();
  const { engine, users, erc20, erc721 } = world;
  await world.send("POST", "/api/v1/mint", {
    body: { users: [{ userId: users[0], mints: entries(world, 1) }] },
  });
  const ids = await Promise.all([
    engine.operator.seal("validium"),
    engine.operator.seal("zk-rollup"),
  ]);
  const vaults = (await world.send("GET", `/api/v1/users/${users[0]}/vaults`)).body.data as {
    vaultId: string;
  }[];
  const read = async () => {
    const answers = [
      ...ids.flatMap((batch) => [
        `/public/v1/batches/${batch?.batchId}`,
        `/public/v1/batches/${batch?.batchId}/data`,
      ]),
      ...vaults.map(({ vaultId }) => `/public/v1/vaults/${vaultId}/proof`),
    ].map(async (url) => world.send("GET", url, { key: null }));
    return (await Promise.all(answers)).map(({ status, body }) => ({ status, body }));
  };
  const before = await read();
  expect(before.map(({ status }) => status)).toEqual(before.map(() => 200));
  expect(before).toHaveLength(2 * 2 + 3);

  const { webhookId } = (
    await world.send("POST", "/api/v1/webhooks", { body: { url: "https://example.com/" } })
  ).body;
  const mints = entries(world, 2);
  const hooks = "/api/v1/webhooks/{webhookId}";
  const taken = [{ vaultId: vaults[0]?.vaultId, quantity: "1" }];
  const withdrawal = { vaults: taken, deadline: "1900000000" };
  // The things that a key can change, in an order in which each can happen; then the routes that
  // are not listed here, by their own examples.
  const listed: Readonly<Record<string, { readonly body?: unknown; readonly status?: number }>> = {
    "POST /api/v1/mint": { body: { users: [{ userId: users[1], mints }] } },
    "POST /api/mint": { body: { users: [{ userId: users[1], mints: entries(world, 3) }] } },
    "POST /api/v1/users": { body: { ownerAddress: `0x${"66".repeat(20)}` }, status: 201 },
    "POST /api/v1/users/bulk": {
      body: { users: [{ ownerAddress: `0x${"67".repeat(20)}` }] },
      status: 201,
    },
    "POST /api/v1/withdrawals": {
      body: { ...withdrawal, signature: `0x${"11".repeat(65)}` },
      status: 422,
    },
    "PUT /api/v1/application/defaults": { body: { dataAvailabilityMode: "validium" } },
    "PUT /api/v1/assets/{assetId}/enablement": {},
    "DELETE /api/v1/assets/{assetId}/enablement": {},
    "POST /api/v1/webhooks": { body: { url: "https://example.com/more" }, status: 201 },
    [`POST ${hooks}/secret`]: {},
    [`PUT ${hooks}/enablement`]: {},
    [`POST ${hooks}/test`]: {},
    [`DELETE ${hooks}`]: {},
  };
  const changing = ENDPOINTS.filter(
    ({ method, path }) => method !== "GET" && path.startsWith("/api/"),
  );
  const others = changing
    .map(
      ({ method, path, example }) =>
        [`${method} ${path}`, { body: example, status: null }] as const,
    )
    .filter(([call]) => listed[call] === undefined);
  for (const [call, { body, status = 200 }] of [...Object.entries(listed), ...others]) {
    const [method, path = ""] = call.split(" ") as ["GET", string];
    const urls = [erc20, erc721].map(({ assetId }) =>
      path
        .replace("{assetId}", assetId)
        .replace("{webhookId}", webhookId)
        .replace("{sequence}", "1"),
    );
    for (const url of new Set(urls)) {
      const answer = await world.send(method, url, body === undefined ? {} : { body });
      if (status !== null) expect([call, answer.status]).toEqual([call, status]);
    }
  }
  expect(await read()).toEqual(before);
  expect((await engine.operator.verify()).problems).toEqual([]);
});
