import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { Readable } from "node:stream";
import { afterAll, expect, test } from "vitest";
import { HttpBatchSource } from "../../core/archive/index.ts";
import { createWorld, entries } from "../server/fixture.ts";

/** Two answers a second to an address, while this clock goes. */
let clock = () => performance.now();
const world = await createWorld({
  now: () => clock(),
  rateLimits: { publicReads: { units: 2, windowSeconds: 1 } },
});
const { engine, app, users } = world;
await world.send("POST", "/api/v1/mint", {
  body: { users: [{ userId: users[0], mints: entries(world, 1) }] },
});
await engine.operator.seal("validium");
const data: Uint8Array = (await engine.batches.getSealed("validium", 0)).data;
const url = await app.listen({ host: "127.0.0.1", port: 0 });
afterAll(() => world[Symbol.asyncDispose]());

test("a source over HTTP is retried on its request until it responds", async () => {
  const source = new HttpBatchSource(`${url}/`);
  const answers = await Promise.all(
    Array.from({ length: 4 }, () => source.batchData("validium", 0)),
  );
  for (const answer of answers) expect(answer).toEqual(Buffer.from(data));
  expect(await source.batchData("validium", 7)).toBeNull();
});

test("a source that asks for too long a wait, or too often, fails with its status", async () => {
  // A pause between the reads would earn answers for all of them.
  const stopped = clock();
  clock = () => stopped;
  const read = (source: HttpBatchSource) =>
    Promise.all([0, 0, 0].map((batch) => source.batchData("validium", batch)));
  for (const options of [{ maxWaitMs: 999 }, { retries: 0 }]) {
    await expect(read(new HttpBatchSource(url, options))).rejects.toMatchObject({
      code: "proof_not_ready",
      message: expect.stringContaining("answered 429"),
    });
  }
  world.app.drain();
  await expect(new HttpBatchSource(url, { retries: 0 }).batchData("validium", 0)).rejects.toThrow(
    "answered 503",
  );
});

test("a read ends with its caller's signal", async () => {
  const caller = new AbortController();
  const reading = new HttpBatchSource(url).batchData("validium", 0, caller.signal);
  caller.abort(new Error("enough"));
  await expect(reading).rejects.toThrow("enough");
});

test("an answer of a rollup batch ends at what a transaction can carry, however long its source goes on", async () => {
  const chunk = Buffer.alloc(64 * 1024);
  let sent = 0;
  const endless = function* () {
    for (;;) {
      sent += chunk.length;
      yield chunk;
    }
  };
  const peer = createServer((_, response) => void Readable.from(endless()).pipe(response));
  await new Promise<void>((done) => peer.listen(0, "127.0.0.1", done));
  const source = new HttpBatchSource(`http://127.0.0.1:${(peer.address() as AddressInfo).port}`);
  await expect(source.batchData("zk-rollup", 0)).rejects.toThrow("longer than 4194304 bytes");
  expect(sent).toBeLessThan(64 * 1024 * 1024);
  peer.closeAllConnections();
  await new Promise((done) => peer.close(done));
});
