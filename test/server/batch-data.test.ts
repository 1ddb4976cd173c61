import { once } from "node:events";
import { PassThrough } from "node:stream";
import { expect, test } from "vitest";
import { OutgoingBatches } from "../../server/http/wire/batch-data.ts";
import { createWorld, entries, refusal } from "./fixture.ts";

test("a batch in transfer to many clients is in memory once, and beyond a limit no other starts", async () => {
  await using world = await createWorld();
  const { engine, users } = world;
  for (const token of [1, 2]) {
    await world.send("POST", "/api/v1/mint", { body: { users: [{ userId: users[0], mints: entries(world, token) }] } });
    await engine.operator.seal("validium");
    await engine.operator.seal("zk-rollup");
  }
  const outgoing = new OutgoingBatches(async (...batch) => (await engine.batches.getSealed(...batch)).data, 1);
  const [slow, other] = [new PassThrough(), new PassThrough()];
  const data = await outgoing.data("validium", 0, slow);
  expect(data).toEqual(Buffer.from((await engine.batches.getSealed("validium", 0)).data));
  expect(await outgoing.data("validium", 0, other)).toBe(data);
  await expect(outgoing.data("validium", 1, new PassThrough())).rejects.toMatchObject({ code: "rate_limited" });
  for (const answer of [slow, other]) {
    answer.destroy();
    await once(answer, "close");
  }
  expect((await outgoing.data("validium", 1, new PassThrough())).length).toBeGreaterThan(0);
  await expect(outgoing.data("zk-rollup", 9, new PassThrough())).rejects.toMatchObject({ code: "rate_limited" });
});

test("a large response costs more than a small one", async () => {
  await using world = await createWorld({ rateLimits: { publicReads: { units: 3, windowSeconds: 60 } }, now: () => 0 });
  const { engine, erc1155, users } = world;
  const mints = Array.from({ length: 9_000 }, (_, i) => {
    const mintingBlob = `0x${Buffer.from(String(i).padStart(200, "1")).toString("hex")}`;
    return { mintingBlob, assetId: erc1155.assetId, amount: 1, dataAvailabilityMode: "validium" };
  });
  expect((await world.send("POST", "/api/v1/mint", { body: { users: [{ userId: users[0], mints }] } })).status).toBe(
    200,
  );
  await engine.operator.seal("validium");
  const read = () => world.send("GET", "/public/v1/batches/validium-0/data", { key: null });
  const { status, body, headers } = await read();
  const units = Math.ceil(body.length / 2 ** 20);
  expect([status, units]).toEqual([200, 2]);
  expect(headers.ratelimit).toContain("r=1;");
  // The last unit buys the second read, whose bytes are owed; the debt keeps the third one out.
  expect((await read()).status).toBe(200);
  expect(refusal(await read())).toMatchObject({ status: 429, code: "rate_limited" });
});
