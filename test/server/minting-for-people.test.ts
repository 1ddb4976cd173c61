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
