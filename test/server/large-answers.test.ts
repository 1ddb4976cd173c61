import { once } from "node:events";
import { connect } from "node:net";
import { expect, test } from "vitest";
import { listen } from "./connection.ts";
import { createWorld, type World } from "./fixture.ts";

/** A request of one user for so many ERC-721 tokens from this one on. */
function mintsOf({ erc721: { assetId } }: World, userId: string, first: number, count: number, after = "") {
  const mints = Array.from({ length: count }, (_, i) => ({
    mintingBlob: Buffer.from(`${first + i}${after}`).toString("hex"),
    assetId,
    amount: 1,
    dataAvailabilityMode: "validium",
  }));
  return { users: [{ userId, mints }] };
}

test("a mint gets its response, however long that is and however little the key has left", async () => {
  await using world = await createWorld({ rateLimits: { key: { units: 1_500, windowSeconds: 3600 } } });
  const body = mintsOf(world, world.users[0], 0, 1_500, "x".repeat(240));
  const answer = await world.send("POST", "/api/v1/mint", { body });
  expect(answer.text.length).toBeGreaterThan(2 ** 20);
  expect(answer.status).toBe(200);
  expect((await world.send("POST", "/api/v1/mint", { body })).status).toBe(429);
});

test("a slowly read response stays unchanged while others are sent", async () => {
  const COUNT = 20_000;
  await using world = await createWorld({ limits: { mintsPerRequest: COUNT } });
  const port = await listen(world.app);
  const headers = (key: string) => ({ "x-api-key": key, "content-type": "application/json" });
  const text = JSON.stringify(mintsOf(world, world.users[0], 0, COUNT));
  // More than the system takes of a connection that nobody reads: the rest waits in the server.
  const slow = connect(port, "127.0.0.1").setEncoding("latin1").pause();
  const head = Object.entries({ host: "x", ...headers(world.key), "content-length": text.length });
  slow.write(`POST /api/v1/mint HTTP/1.1\r\n${head.map((field) => `${field.join(": ")}\r\n`).join("")}\r\n${text}`);
  const minted = async () => (await world.engine.assets.get(world.applicationId, world.erc721.assetId)).minted;
  await expect.poll(minted).toBe(BigInt(COUNT));
  for (const first of [COUNT, 2 * COUNT]) {
    const body = JSON.stringify(mintsOf(world, world.otherUser, first, COUNT));
    const url = `http://127.0.0.1:${port}/api/v1/mint`;
    const other = await fetch(url, { method: "POST", headers: headers(world.otherKey), body });
    expect([other.status, (await other.arrayBuffer()).byteLength > 10 * 2 ** 20]).toEqual([200, true]);
  }
  let read = "";
  slow.on("data", (piece) => {
    read += piece;
  });
  slow.resume();
  while (!read.endsWith('"receipt":null}')) await once(slow, "data");
  slow.destroy();
  const { vaults, transactions } = JSON.parse(read.slice(read.indexOf("\r\n\r\n")));
  expect(transactions).toHaveLength(COUNT);
  expect(vaults.map(({ tokenId }: { tokenId: string }) => Number(tokenId))).toEqual([...Array(COUNT).keys()]);
  expect(new Set(vaults.map(({ userId }: { userId: string }) => userId))).toEqual(new Set([world.users[0]]));
});
