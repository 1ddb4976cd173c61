import { afterAll, beforeAll, expect, test } from "vitest";
import { createWorld, refusal, type World } from "./fixture.ts";

// What the API takes beyond the original's requests: owners in the place of users, users in bulk, defaults.

let world: World;
beforeAll(async () => {
  world = await createWorld();
});
afterAll(() => world[Symbol.asyncDispose]());

const _NEW = `0x${"4e".repeat(20)}`;

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
