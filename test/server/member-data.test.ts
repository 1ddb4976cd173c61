import { once } from "node:events";
import { connect } from "node:net";
import type { FastifyInstance } from "fastify";
import { toHex } from "viem";
import { afterAll, beforeAll, expect, test } from "vitest";
import { BYTES, dataKey, signedKey, TEXT } from "../../core/guards/archive/keys.ts";
import type { CommitteeMember } from "../../core/guards/committee/index.ts";
import { buildMemberServer } from "../../server/process/member/app.ts";
import { type Chain, connectOperator, createChain, openMembers } from "../settlement/fixture.ts";

/** Of a batch: more than the kernel holds for a connection that nobody reads. */
const BATCH_BYTES = 32 * 1024 * 1024;

let chain: Chain;
let members: readonly CommitteeMember[];
let app: FastifyInstance;

beforeAll(async () => {
  chain = await createChain();
  const l1 = await connectOperator(chain);
  members = await openMembers(l1);
  const [member] = members;
  if (member === undefined) throw new Error("no member");
  app = buildMemberServer({ member, l1, watcher: { lastError: null }, maxOutgoingBytes: 1, hosts: ["member.example"] });
});

afterAll(async () => {
  await app.close();
  for (const member of members) await member.close();
  await chain.close();
});

test("a member refuses requests with another site's name", async () => {
  const statusAt = async (host: string) => (await app.inject({ url: "/v1/status", headers: { host } })).statusCode;
  expect(await statusAt("attacker.example")).toBe(421);
  for (const host of ["member.example:3100", "127.0.0.1", "member"]) expect(await statusAt(host)).toBe(200);
});

test("a member is not exhausted by clients that request batches and do not read them", async () => {
  const [member] = members;
  if (member === undefined) throw new Error("no member");
  // As if it had signed them.
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
  // The same batch is in memory once, so others may have it.
  expect((await (await read(0)).arrayBuffer()).byteLength).toBe(BATCH_BYTES);
  idle.destroy();
  await expect.poll(async () => (await read(1)).status).toBe(200);
});
