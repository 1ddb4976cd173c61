import type { FastifyInstance } from "fastify";
import { afterAll, expect, test } from "vitest";
import { advanceMirror, importBatches, RemoteAttester } from "../../core/mirror/index.ts";
import { COMMITTEE, THRESHOLD } from "../../scripts/sandbox/accounts.ts";
import { buildMemberServer } from "../../server/process/batch-signers.ts";
import { at } from "../settlement/fixture.ts";
import { CONFIRMATIONS, createMirrorWorld } from "./fixture.ts";

const servers: FastifyInstance[] = [];

const world = await createMirrorWorld();
const { near, attesters } = world;
const members: RemoteAttester[] = await Promise.all(
  near.members.map(async (member, index) => {
    const app = buildMemberServer({
      member,
      l1: near.l1,
      watcher: { lastError: null },
      attester: at(attesters, index),
    });
    servers.push(app);
    const url = await app.listen({ host: "127.0.0.1", port: 0 });
    return new RemoteAttester({ address: at(COMMITTEE, index).address, url });
  }),
);
await near.mint("erc20", "validium");
await { ...near, assets: world.far.assets }.mint("erc20", "zk-rollup", "", 5);
await near.settler.round();
afterAll(async () => {
  for (const server of servers) await server.close();
  await world.close();
});

test("members vouch over HTTP for states that the source has had by its finality, and for no others", async () => {
  const { mirror } = world;
  const { epoch } = await mirror.committee();
  const ask = (countRollup: number) =>
    at(members, 0).attest(mirror.settlement, { countValidium: 1, countRollup }, epoch);
  await expect(ask(1)).rejects.toThrow("l1_failed");
  await world.near.chain.mine(Number(CONFIRMATIONS));
  expect(await ask(1)).toMatch(/^0x[0-9a-f]{130}$/);
  await expect(ask(2)).rejects.toThrow("l1_failed");
  await expect(
    at(members, 0).attest(
      { chainId: 1n, contract: "0xno" },
      { countValidium: 1, countRollup: 1 },
      0n,
    ),
  ).rejects.toThrow("validation_failed");
});

test("what they sign brings the mirror up to date, and its batches are known there once", async () => {
  const { source, mirror } = world;
  const dead = new RemoteAttester({ address: at(members, 0).address, url: "http://127.0.0.1:9" });
  const committee = { members: [dead, ...members.slice(1)], threshold: THRESHOLD };
  expect(await advanceMirror({ source, mirror, committee })).toBe(2);
  expect(source.countsAt(await mirror.commitment())).toEqual({ countValidium: 1, countRollup: 1 });
  const progress = { steps: 0 };
  expect(await importBatches({ source, mirror }, progress)).toEqual(["validium-0", "zk-rollup-0"]);
  expect(await importBatches({ source, mirror }, progress)).toEqual([]);
  expect(await importBatches({ source, mirror }, { steps: 0 })).toEqual([]);
  for (const mode of ["validium", "zk-rollup"] as const)
    expect(await mirror.isImported(mode, 0)).toBe(true);
});
