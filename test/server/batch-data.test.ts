import { once } from "node:events";
import { connect } from "node:net";
import { PassThrough } from "node:stream";
import type { FastifyInstance } from "fastify";
import { toHex } from "viem";
import { afterAll, beforeAll, expect, test } from "vitest";
import { BYTES, dataKey, signedKey, TEXT } from "../../core/archive/keys.ts";
import type { CommitteeMember } from "../../core/committee/index.ts";
import { outgoingBatches } from "../../server/http/wire/batch-data.ts";
import { buildMemberServer } from "../../server/process/batch-signers.ts";
import { type Chain, createChain, openMembers } from "../settlement/fixture.ts";
import { createWorld, entries, refusal } from "./fixture.ts";

test("a batch in transfer to many clients is in memory once, and beyond a limit no other starts", async () => {
  await using world = await createWorld();
  const { engine, users } = world;
  for (const token of [1, 2]) {
    await world.send("POST", "/api/v1/mint", {
      body: { users: [{ userId: users[0], mints: entries(world, token) }] },
    });
    await engine.operator.seal("validium");
    await engine.operator.seal("zk-rollup");
  }
  const dataOf = outgoingBatches(
    async (...batch) => (await engine.batches.getSealed(...batch)).data,
    1,
  );
  const [slow, other] = [new PassThrough(), new PassThrough()];
  const data = await dataOf("validium", 0, slow);
  expect(data).toEqual(Buffer.from((await engine.batches.getSealed("validium", 0)).data));
  expect(await dataOf("validium", 0, other)).toBe(data);
  await expect(dataOf("validium", 1, new PassThrough())).rejects.toMatchObject({
    code: "rate_limited",
  });
  for (const answer of [slow, other]) {
    answer.destroy();
    await once(answer, "close");
  }
  expect((await dataOf("validium", 1, new PassThrough())).length).toBeGreaterThan(0);
  await expect(dataOf("zk-rollup", 9, new PassThrough())).rejects.toMatchObject({
    code: "rate_limited",
  });
});

test("a large response costs more than a small one", async () => {
  await using world = await createWorld({
    rateLimits: { publicReads: { units: 3, windowSeconds: 60 } },
    now: () => 0,
  });
  const { engine, erc1155, users } = world;
  const mints = Array.from({ length: 9_000 }, (_, i) => {
    const mintingBlob = `0x${Buffer.from(String(i).padStart(200, "1")).toString("hex")}`;
    return { mintingBlob, assetId: erc1155.assetId, amount: 1, dataAvailabilityMode: "validium" };
  });
  expect(
    (await world.send("POST", "/api/v1/mint", { body: { users: [{ userId: users[0], mints }] } }))
      .status,
  ).toBe(200);
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

/** A batch has more bytes than the kernel holds for a connection that nobody reads. */
const BATCH_BYTES = 32 * 1024 * 1024;

let chain: Chain;
let members: readonly CommitteeMember[];
let app: FastifyInstance;
const watcher = { lastError: null as unknown };

beforeAll(async () => {
  chain = await createChain();
  const l1 = await chain.connectOperator();
  members = await openMembers(l1);
  const [member] = members;
  if (member === undefined) throw new Error("no member");
  app = buildMemberServer({
    member,
    l1,
    watcher,
    maxOutgoingBytes: 1,
    hosts: ["member.example"],
  });
});

afterAll(async () => {
  await app.close();
  for (const member of members) await member.close();
  await chain.close();
});

test("a member refuses requests with another site's name", async () => {
  const statusAt = async (host: string) =>
    (await app.inject({ url: "/v1/status", headers: { host } })).statusCode;
  expect(await statusAt("attacker.example")).toBe(421);
  for (const host of ["member.example:3100", "127.0.0.1", "member"])
    expect(await statusAt(host)).toBe(200);
});

test("a member that does not follow L1 is not ready, and says so", async () => {
  watcher.lastError = new Error("https://node.example/secret does not answer");
  const reply = await app.inject({ url: "/readyz", headers: { host: "member" } });
  watcher.lastError = null;
  expect(reply.statusCode).toBe(503);
  const detail = "the archive is not up to date with L1; the log has the reason";
  expect(reply.json().errors).toEqual([{ pointer: "/checks/archive", code: "not_ready", detail }]);
});

test("a member is not exhausted by clients that request batches and do not read them", async () => {
  const [member] = members;
  if (member === undefined) throw new Error("no member");
  // The store looks as if the member had signed them.
  for (const batchNumber of [0, 1]) {
    const dataHash = toHex(batchNumber, { size: 32 });
    await member.archive.store.put(signedKey(batchNumber), JSON.stringify({ dataHash }), TEXT);
    await member.archive.store.put(dataKey(dataHash), new Uint8Array(BATCH_BYTES), BYTES);
  }
  const url = new URL(await app.listen({ host: "127.0.0.1", port: 0 }));
  const read = (batch: number) => fetch(new URL(`/public/v1/batches/validium-${batch}/data`, url));
  const idle = connect({ host: url.hostname, port: Number(url.port) });
  idle.write(`GET /public/v1/batches/validium-0/data HTTP/1.1\r\nhost: ${url.host}\r\n\r\n`);
  await once(idle, "readable");
  const refused = await read(1);
  expect([refused.status, refused.headers.get("retry-after")]).toEqual([429, "10"]);
  await refused.body?.cancel();
  // A batch is in memory once, so others may have it.
  expect((await (await read(0)).arrayBuffer()).byteLength).toBe(BATCH_BYTES);
  idle.destroy();
  await expect.poll(async () => (await read(1)).status).toBe(200);
});
