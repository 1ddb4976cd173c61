import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { expect, test } from "vitest";
import {
  leaderOf,
  type Member,
  Minter,
  settled,
  startWorld,
  vaultsOf,
  type World,
} from "../../scripts/cluster/world.ts";

const FAULTS = Number(process.env.MINTMARK_TEST_FAULTS ?? 200);

/** Each strikes, waits, and leaves everything running. */
const STRIKES: Readonly<Record<string, (world: World, member: Member, ms: number) => Promise<void>>> = {
  "SIGKILL of a server": async (_, member, ms) => {
    await member.kill();
    await pause(ms);
    await member.restart();
  },
  "SIGKILL of the leader": async ({ members }, _, ms) => {
    const leader = await leaderOf(members);
    await leader.kill();
    await pause(ms);
    await leader.restart();
  },
  "SIGSTOP of a server": async (_, member, ms) => {
    member.freeze(true);
    await pause(2 * ms);
    member.freeze(false);
  },
  "SIGSTOP of the leader, beyond its lease": async ({ members }) => {
    const leader = await leaderOf(members);
    leader.freeze(true);
    await pause(3_500);
    leader.freeze(false);
  },
  "SIGKILL of the database's standby": async ({ standby }, _, ms) => {
    await standby.kill();
    await pause(ms);
    await standby.start();
  },
  "SIGSTOP of the database's standby, and cancelled waits": async ({ standby, primary }, _, ms) => {
    standby.freeze(true);
    for (let i = 0; i < 3; i++) {
      await pause(ms / 3);
      await primary.query("select pg_cancel_backend(pid) from pg_stat_activity where wait_event = 'SyncRep'");
    }
    standby.freeze(false);
  },
  "SIGKILL of the database's primary": async ({ primary }, _, ms) => {
    await primary.kill();
    await pause(ms);
    await primary.start();
  },
  "SIGSTOP of the database's primary": async ({ primary }, _, ms) => {
    primary.freeze(true);
    await pause(2 * ms);
    primary.freeze(false);
  },
  "cut connections": async ({ primary }) => {
    await primary.query(
      "select pg_terminate_backend(pid) from pg_stat_activity where application_name like 'mintmark %'",
    );
  },
};

test(`a cluster loses and doubles nothing over ${FAULTS} faults`, async () => {
  const folder = await mkdtemp(join(tmpdir(), "mintmark-faults-"));
  const next = (below: number) => Math.floor(Math.random() * below);
  const struck: Record<string, number> = {};
  try {
    await using world = await startWorld(folder, () => {});
    const minters = [1, 10].map((perRequest, i) => new Minter(world, perRequest, i * 1_000_000));
    let isOver = false;
    const minting = minters.map(async (minter) => {
      while (!isOver) await minter.mint();
    });
    const names = Object.keys(STRIKES);
    for (let fault = 0; fault < FAULTS; fault++) {
      const name = names[next(names.length)] as string;
      const member = world.members[next(world.members.length)] as Member;
      await STRIKES[name]?.(world, member, 200 + next(1_500));
      struck[name] = (struck[name] ?? 0) + 1;
      await pause(next(1_000));
    }
    isOver = true;
    await Promise.all(minting);
    const { apiKey, users } = world.facts;
    const commitments = await settled(world.members);
    const acknowledged = minters.flatMap((minter) => minter.acknowledged);
    for (const { url } of world.members) {
      const held = await vaultsOf(url, apiKey, users[0]?.userId ?? "");
      expect(acknowledged.filter((vaultId) => !held.has(vaultId))).toEqual([]);
      expect(held.size).toBe(acknowledged.length);
    }
    expect(new Set(acknowledged).size).toBe(acknowledged.length);
    expect(new Set(commitments).size).toBe(1);
    console.log({ struck, acknowledged: acknowledged.length });
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}, 3_600_000);
