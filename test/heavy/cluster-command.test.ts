import { mkdtemp, rm } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { isWhole } from "../../scripts/cluster/cluster.ts";
import { stateOf } from "../../scripts/cluster/world.ts";
import { Npm } from "../npm.ts";

test("`npx mintmark cluster` kills the leader, goes on minting, and has every acknowledged mint once", async () => {
  const folder = await mkdtemp(join(tmpdir(), "mintmark-cluster-"));
  const files = `${folder}-cluster`;
  onTestFinished(async () => {
    for (const each of [folder, files]) await rm(each, { recursive: true, force: true });
  });
  await using command = new Npm(["exec", "--", "mintmark", "cluster", "--json"], {
    MINTMARK_SANDBOX: folder,
  });
  const report = await command.json();
  expect(report).toMatchObject({ servers: 3, leader: expect.stringMatching(/^[abc]$/) });
  expect(report.leader).not.toBe(report.killed);
  expect(report.acknowledged).toBeGreaterThan(200);
  expect(isWhole(report), JSON.stringify(report)).toBe(true);
});

test("it reads a state again that came as a 503, and names any other refusal", async () => {
  const answers = [503, 200, 404];
  const server = createServer((_, reply) => {
    const status = answers.shift() ?? 500;
    reply
      .writeHead(status)
      .end(JSON.stringify(status === 200 ? { sealed: { commitment: "0x1" } } : { code: "x" }));
  });
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  onTestFinished(() => void server.close());
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  expect(await stateOf(url)).toMatchObject({ sealed: { commitment: "0x1" } });
  await expect(stateOf(url)).rejects.toThrow("answered 404");
});
