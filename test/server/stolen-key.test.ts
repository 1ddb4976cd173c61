import { expect, test } from "vitest";
import { ENDPOINTS } from "../../server/routes/index.ts";
import { createWorld, entries } from "./fixture.ts";

test("a stolen key hides no batch data and no proof, whatever it changes at the API", async () => {
  await using world = await createWorld();
  const { engine, users, erc20, erc721 } = world;
  await world.send("POST", "/api/v1/mint", { body: { users: [{ userId: users[0], mints: entries(world, 1) }] } });
  const ids = await Promise.all([engine.operator.seal("validium"), engine.operator.seal("zk-rollup")]);
  const vaults = (await world.send("GET", `/api/v1/users/${users[0]}/vaults`)).body.data as { vaultId: string }[];
  const read = async () => {
    const answers = [
      ...ids.flatMap((batch) => [`/public/v1/batches/${batch?.batchId}`, `/public/v1/batches/${batch?.batchId}/data`]),
      ...vaults.map(({ vaultId }) => `/public/v1/vaults/${vaultId}/proof`),
    ].map(async (url) => world.send("GET", url, { key: null }));
    return (await Promise.all(answers)).map(({ status, body }) => ({ status, body }));
  };
  const before = await read();
  expect(before.map(({ status }) => status)).toEqual(before.map(() => 200));
  expect(before).toHaveLength(2 * 2 + 3);

  const { webhookId } = (await world.send("POST", "/api/v1/webhooks", { body: { url: "https://example.com/" } })).body;
  const mints = entries(world, 2);
  const hooks = "/api/v1/webhooks/{webhookId}";
  const withdrawal = { vaultId: vaults[0]?.vaultId, quantity: "1", deadline: "1900000000" };
  // What a key can change, in an order in which each can happen; then the routes that are not listed here, by their own examples.
  const listed: Readonly<Record<string, { readonly body?: unknown; readonly status?: number }>> = {
    "POST /api/v1/mint": { body: { users: [{ userId: users[1], mints }] } },
    "POST /api/mint": { body: { users: [{ userId: users[1], mints: entries(world, 3) }] } },
    "POST /api/v1/users": { body: { ownerAddress: `0x${"66".repeat(20)}` }, status: 201 },
    "POST /api/v1/users/bulk": { body: { users: [{ ownerAddress: `0x${"67".repeat(20)}` }] }, status: 201 },
    "POST /api/v1/withdrawals": { body: { ...withdrawal, signature: `0x${"11".repeat(65)}` }, status: 422 },
    "PUT /api/v1/application/defaults": { body: { dataAvailabilityMode: "validium" } },
    "PUT /api/v1/assets/{assetId}/enablement": {},
    "DELETE /api/v1/assets/{assetId}/enablement": {},
    "POST /api/v1/webhooks": { body: { url: "https://example.com/more" }, status: 201 },
    [`POST ${hooks}/secret`]: {},
    [`PUT ${hooks}/enablement`]: {},
    [`POST ${hooks}/test`]: {},
    [`DELETE ${hooks}`]: {},
  };
  const changing = ENDPOINTS.filter(({ method, path }) => method !== "GET" && path.startsWith("/api/"));
  const others = changing
    .map(({ method, path, example }) => [`${method} ${path}`, { body: example, status: null }] as const)
    .filter(([call]) => listed[call] === undefined);
  for (const [call, { body, status = 200 }] of [...Object.entries(listed), ...others]) {
    const [method, path = ""] = call.split(" ") as ["GET", string];
    const urls = [erc20, erc721].map(({ assetId }) =>
      path.replace("{assetId}", assetId).replace("{webhookId}", webhookId).replace("{sequence}", "1"),
    );
    for (const url of new Set(urls)) {
      const answer = await world.send(method, url, body === undefined ? {} : { body });
      if (status !== null) expect([call, answer.status]).toEqual([call, status]);
    }
  }
  expect(await read()).toEqual(before);
  expect((await engine.operator.verify()).problems).toEqual([]);
});
