import { afterAll, beforeAll, expect, test } from "vitest";
import { createWorld, refusal, type World } from "./fixture.ts";

// What the API takes beyond the original's requests: owners in the place of users, users in bulk, defaults.

let world: World;
beforeAll(async () => {
  world = await createWorld();
});
afterAll(() => world[Symbol.asyncDispose]());

const NEW = `0x${"4e".repeat(20)}`;

test("users are registered in bulk, and found by owner and reference", async () => {
  const users = [
    { ownerAddress: NEW, reference: "customer 17" },
    { ownerAddress: NEW, userId: "6f1d3c1e-4f0a-4b7e-9a51-0c5d6f2b7a11" },
  ];
  const created = await world.send("POST", "/api/v1/users/bulk", { body: { users } });
  expect(created.status).toBe(201);
  expect(created.body.users).toMatchObject(users);
  expect((await world.send("POST", "/api/v1/users/bulk", { body: { users } })).body).toEqual(created.body);
  expect((await world.send("GET", `/api/v1/users?ownerAddress=${NEW}`)).body.data).toEqual(created.body.users);
  const named = await world.send("GET", "/api/v1/users?reference=customer%2017");
  expect(named.body.data).toEqual(created.body.users.slice(0, 1));
  const many = Array.from({ length: 1_001 }, () => ({ ownerAddress: NEW }));
  expect(refusal(await world.send("POST", "/api/v1/users/bulk", { body: { users: many } }))).toMatchObject({
    status: 400,
    errors: ["/users validation_failed"],
  });
  const taken = [{ ...users[1], ownerAddress: world.erc20.contractAddress }];
  expect(refusal(await world.send("POST", "/api/v1/users/bulk", { body: { users: taken } }))).toMatchObject({
    status: 409,
    code: "user_exists",
    errors: ["/users/0/userId user_exists"],
  });
});

test("an address is minted to in the application's default mode", async () => {
  const ownerAddress = `0x${"4f".repeat(20)}`;
  const body = { users: [{ ownerAddress, mints: [{ assetId: world.erc721.assetId, tokenId: "77" }] }] };
  expect(refusal(await world.send("POST", "/api/v1/mint", { body }))).toMatchObject({
    status: 400,
    errors: ["/users/0/mints/0/dataAvailabilityMode validation_failed"],
  });
  const defaults = { dataAvailabilityMode: "zk-rollup" };
  const changed = await world.send("PUT", "/api/v1/application/defaults", { body: defaults });
  expect(changed).toMatchObject({ status: 200, body: { applicationId: world.applicationId, ...defaults } });
  expect((await world.send("GET", "/api/v1/application")).body).toEqual(changed.body);
  const minted = await world.send("POST", "/api/v1/mint", { body });
  expect(minted.body.vaults).toMatchObject([{ ownerAddress, tokenId: "77", ...defaults }]);
  const minter = await world.newKey(["mint"]);
  const other = {
    users: [{ ownerAddress: `0x${"50".repeat(20)}`, mints: [{ assetId: world.erc721.assetId, tokenId: "78" }] }],
  };
  expect(refusal(await world.send("POST", "/api/v1/mint", { body: other, key: minter }))).toMatchObject({
    status: 403,
    code: "scope_missing",
  });
});

test("vaults, transactions and withdrawals are found by what people know of them", async () => {
  const ownerAddress = `0x${"51".repeat(20)}`;
  const { assetId } = world.erc721;
  const mint = { assetId, tokenId: "1001", dataAvailabilityMode: "validium", reference: "order-1" };
  const minted = await world.send("POST", "/api/v1/mint", { body: { users: [{ ownerAddress, mints: [mint] }] } });
  const [{ vaultId, batchId, userId, createdAt }] = minted.body.vaults;
  const before = new Date(Date.parse(createdAt) - 1).toISOString();
  const idsOf = async (query: string) =>
    (await world.send("GET", `/api/v1/vaults?${query}`)).body.data.map((vault: { vaultId: string }) => vault.vaultId);
  for (const query of [
    `tokenId=1001`,
    `tokenId=1001&assetId=${assetId}`,
    `ownerAddress=${ownerAddress}`,
    `userId=${userId}&status=accepted`,
    `assetId=${assetId}&batchId=${batchId}`,
    `createdAfter=${before}&dataAvailabilityMode=validium`,
    `reference=order-1`,
  ]) {
    expect(await idsOf(query), query).toEqual([vaultId]);
  }
  expect(await idsOf("tokenId=1002")).toEqual([]);
  expect(await idsOf(`tokenId=1001&status=failed`)).toEqual([]);
  const { body } = await world.send("GET", `/api/v1/transactions?ownerAddress=${ownerAddress}&reference=order-1`);
  expect(body.data).toMatchObject([{ vaultId, reference: "order-1" }]);
  for (const query of [`ownerAddress=${ownerAddress}`, `assetId=${assetId}`, `createdAfter=${before}`]) {
    expect((await world.send("GET", `/api/v1/withdrawals?${query}`)).body.data).toEqual([]);
  }
  const wrong = await world.send("GET", `/api/v1/vaults?tokenId=${1n << 256n}`);
  expect(refusal(wrong)).toMatchObject({ status: 400, errors: ["/query/tokenId validation_failed"] });
});

test("usage is that of the application and of each key, by period", async () => {
  const { body } = await world.send("GET", "/api/v1/usage");
  const { data } = (await world.send("GET", "/api/v1/transactions?limit=100")).body;
  expect(body).toMatchObject({ mints: String(data.length), transactions: data.length });
  expect(body.periods).toHaveLength(30);
  expect(body.periods.at(-1).transactions).toBe(data.length);
  expect(body.keys.map(({ keyId }: { keyId: string }) => keyId)).toContain(world.keyId);
  const hours = await world.send(
    "GET",
    "/api/v1/usage?interval=hour&since=2026-01-01T00:30:00Z&until=2026-01-01T03:00:00Z",
  );
  expect(hours.body.periods).toEqual([
    { since: "2026-01-01T00:30:00.000Z", until: "2026-01-01T01:00:00.000Z", transactions: 0 },
    { since: "2026-01-01T01:00:00.000Z", until: "2026-01-01T02:00:00.000Z", transactions: 0 },
    { since: "2026-01-01T02:00:00.000Z", until: "2026-01-01T03:00:00.000Z", transactions: 0 },
  ]);
  const many = await world.send(
    "GET",
    "/api/v1/usage?interval=hour&since=2026-01-01T00:00:00Z&until=2026-02-01T00:00:00Z",
  );
  expect(refusal(many)).toMatchObject({ status: 400, code: "validation_failed" });
  expect(many.body.detail).toBe(
    "There are more than 100 periods from since to until. Ask for a longer interval or a shorter time.",
  );
  const late = await world.send("GET", "/api/v1/usage?since=2026-02-01T00:00:00Z&until=2026-01-01T00:00:00Z");
  expect(late.body.detail).toBe("since must be a time before until.");
  const word = await world.send("GET", "/api/v1/usage?since=yesterday");
  expect(word.body.errors).toEqual([
    {
      pointer: "/query/since",
      code: "validation_failed",
      detail: 'Give a time with its zone, such as "2026-11-21T07:56:56Z".',
    },
  ]);
});
