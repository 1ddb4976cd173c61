import { cpSync } from "node:fs";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { type ClusterServer, leaderOf, type Servers } from "../../../scripts/cluster/world.ts";
import type { Strike } from "./campaign.ts";
import type { Link } from "./link.ts";
import type { Machine } from "./patroni.ts";

const HOUR = 3_600_000;
/** Longer than the servers' lease. */
const BEYOND_LEASE_MS = 3_500;

/** Strikes at the servers, over any database. */
export function serverStrikes(world: Servers, folder: string): Record<string, Strike> {
  const { members } = world;
  const any = () => members[Math.floor(Math.random() * members.length)] as ClusterServer;
  return {
    "SIGKILL of a server": async (ms) => {
      const member = any();
      await member.kill();
      await pause(ms);
      await member.restart();
    },
    "SIGKILL of the leader": async (ms) => {
      const leader = await leaderOf(members);
      await leader.kill();
      await pause(ms);
      await leader.restart();
    },
    "SIGSTOP of a server": async (ms) => {
      const member = any();
      member.freeze(true);
      await pause(2 * ms);
      member.freeze(false);
    },
    "SIGSTOP of the leader, beyond its lease": async () => {
      const leader = await leaderOf(members);
      leader.freeze(true);
      await pause(BEYOND_LEASE_MS);
      leader.freeze(false);
    },
    "a copy of a server's store, started beside it": async (ms) => {
      const member = any();
      await member.kill();
      const copy = join(folder, "copy");
      await rm(copy, { recursive: true, force: true });
      cpSync(join(folder, member.name), copy, { recursive: true });
      const [second] = await Promise.all([world.join("copy"), member.restart()]);
      await pause(ms);
      // Another server must be able to lead, whichever leads now.
      await (await leaderOf([...members, second])).kill();
      await pause(BEYOND_LEASE_MS);
      await second.kill();
      for (const one of members) if (one.end !== null) await one.restart();
    },
  };
}

/** Strikes that cut servers off from the database, and move their clocks. */
export function pathStrikes(
  world: Servers,
  links: ReadonlyMap<string, Link>,
  machines: ReadonlyMap<string, Machine>,
): Record<string, Strike> {
  const { members } = world;
  const linkOf = ({ name }: ClusterServer) => links.get(name) as Link;
  const any = () => members[Math.floor(Math.random() * members.length)] as ClusterServer;
  const cut = async (link: Link, ms: number) => {
    link.cut(true);
    await pause(ms);
    link.cut(false);
  };
  return {
    "partition of the leader from the database": async () =>
      cut(linkOf(await leaderOf(members)), BEYOND_LEASE_MS + 3_000),
    "partition of a server from the database": async (ms) => cut(linkOf(any()), 3 * ms),
    "reset connections": async () => {
      for (const link of links.values()) link.reset();
    },
    "clock jump of a server": async (ms) => {
      const machine = machines.get(any().name) as Machine;
      machine.jump(Math.random() < 0.5 ? HOUR : -HOUR);
      await pause(2 * ms);
      machine.jump(0);
    },
    "slow disk of the leader": async (ms) => {
      const machine = machines.get((await leaderOf(members)).name) as Machine;
      machine.slow(300);
      await pause(2 * ms);
      machine.slow(0);
    },
  };
}
