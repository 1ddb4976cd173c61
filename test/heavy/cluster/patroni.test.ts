import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import {
  emptyFolder,
  leaderOf,
  minterOf,
  settled,
  startServers,
  vaultsOf,
} from "../../../scripts/cluster/world.ts";
import { campaign, type Strike, verify } from "./campaign.ts";
import type { Link } from "./link.ts";
import type { PatroniNode, PatroniOptions } from "./patroni.ts";
import { compileFaults, Machine, missingForPatroni, PatroniCluster } from "./patroni.ts";
import { pathStrikes, serverStrikes } from "./strikes.ts";

const FAULTS = Number(process.env.MINTMARK_TEST_FAULTS ?? 150);
const NODES = 3;
/** Longer than Patroni waits for a silent primary. */
const BEYOND_TTL_MS = 12_000;
const HOUR = 3_600_000;

/** Strikes at the database, while Patroni decides who is the primary. */
function databaseStrikes(database: PatroniCluster): Record<string, Strike> {
  const standby = async () => {
    const primary = await database.primary();
    const others = database.nodes.filter((node) => node !== primary);
    return others[Math.floor(Math.random() * others.length)] as PatroniNode;
  };
  const frozen = async (node: PatroniNode, ms: number) => {
    node.freeze(true);
    await pause(ms);
    node.freeze(false);
  };
  // A watchdog restarts a primary's machine that slept. Without one, Patroni 3.0 can take the lock
  // of the new primary as it wakes up: its standbys, which have a later timeline, then never
  // follow.
  const asleep = async (node: PatroniNode, ms: number, what: "patroni" | "machine" = "machine") => {
    node.freeze(true, what);
    await pause(ms);
    await node.kill("machine");
    node.start();
  };
  const cut = async (node: PatroniNode, ms: number, links?: ("postgres" | "rest" | "etcd")[]) => {
    node.cut(true, links);
    await pause(ms);
    node.cut(false, links);
  };
  const restarted = async (node: PatroniNode, ms: number) => {
    await node.kill("machine");
    await pause(ms);
    node.start();
  };
  const bent = async ({ machine }: PatroniNode, ms: number, bend: (machine: Machine) => void) => {
    bend(machine);
    await pause(ms);
    machine.jump(0);
    machine.slow(0);
  };
  const cancelled = async (ms: number) => {
    const primary = await database.primary();
    const others = database.nodes.filter((node) => node !== primary);
    for (const node of others) node.freeze(true);
    for (let i = 0; i < 3; i++) {
      await pause(ms / 3);
      await primary
        .query("select pg_cancel_backend(pid) from pg_stat_activity where wait_event = 'SyncRep'")
        .catch(() => []);
    }
    for (const node of others) node.freeze(false);
  };
  return {
    "SIGKILL of the primary": async () => (await database.primary()).kill("postgres"),
    "SIGKILL of the primary's machine": async () =>
      restarted(await database.primary(), BEYOND_TTL_MS),
    "SIGKILL of a standby's machine": async (ms) => restarted(await standby(), ms),
    "SIGSTOP of the primary's machine": async () => asleep(await database.primary(), BEYOND_TTL_MS),
    "SIGSTOP of the primary's Patroni": async () =>
      asleep(await database.primary(), BEYOND_TTL_MS, "patroni"),
    "SIGSTOP of a standby's machine": async (ms) => frozen(await standby(), 2 * ms),
    "partition of the primary": async () => cut(await database.primary(), BEYOND_TTL_MS),
    "partition of the primary from etcd": async () =>
      cut(await database.primary(), BEYOND_TTL_MS, ["etcd"]),
    "partition of the primary from its standbys": async (ms) =>
      cut(await database.primary(), 2 * ms, ["postgres"]),
    "partition of a standby": async (ms) => cut(await standby(), 2 * ms),
    "SIGSTOP of etcd": async () => {
      database.freezeEtcd(true);
      await pause(BEYOND_TTL_MS);
      database.freezeEtcd(false);
    },
    "cancelled waits while no standby answers": cancelled,
    "statement timeouts while no standby answers": async (ms) => {
      const primary = await database.primary();
      await primary.query("alter role mintmark set statement_timeout = 100");
      await primary.query(
        "select pg_terminate_backend(pid) from pg_stat_activity where usename = 'mintmark'",
      );
      const others = database.nodes.filter((node) => node !== primary);
      for (const node of others) node.freeze(true);
      await pause(ms);
      for (const node of others) node.freeze(false);
      await database.replicates();
      await (await database.primary()).query("alter role mintmark reset statement_timeout");
      await (await database.primary()).query(
        "select pg_terminate_backend(pid) from pg_stat_activity where usename = 'mintmark'",
      );
    },
    "slow disk of the primary": async (ms) =>
      bent(await database.primary(), 2 * ms, (machine) => machine.slow(300)),
    "slow disk of a standby": async (ms) =>
      bent(await standby(), 2 * ms, (machine) => machine.slow(300)),
    "clock of the primary an hour ahead": async (ms) =>
      bent(await database.primary(), 2 * ms, (machine) => machine.jump(HOUR)),
    "clock of the primary an hour behind": async (ms) =>
      bent(await database.primary(), 2 * ms, (machine) => machine.jump(-HOUR)),
    switchover: async () => {
      const primary = await database.primary();
      await primary.ask("/switchover", "POST", { leader: primary.name });
    },
  };
}

const missing = missingForPatroni();
if (missing.length > 0)
  console.log(
    `Not run: ${missing.join(", ")} are not here (Debian: patroni postgresql-15 etcd-server gcc).`,
  );

describe.skipIf(missing.length > 0)("with Patroni", () => {
  test(`a cluster loses and doubles nothing over ${FAULTS} faults`, async () => {
    await using around = await surroundings({ isSynchronous: true });
    const { world, folder, links, machines, database } = around;
    const all: Record<string, Strike> = {
      ...serverStrikes(world, folder),
      ...pathStrikes(world, links, machines),
      ...databaseStrikes(database),
    };
    const only = process.env.MINTMARK_TEST_FAULTS_ONLY;
    await campaign({
      world,
      folder,
      faults: FAULTS,
      strikes: Object.fromEntries(
        Object.entries(all).filter(([name]) => only === undefined || name.includes(only)),
      ),
      url: async () => around.url,
      mended: () => database.replicates(),
    });
  });

  test("another server mints soon after the leader or the primary is killed or frozen", async () => {
    await using around = await surroundings({ isSynchronous: true, ttlSeconds: 5 });
    const { world, database } = around;
    const { members, facts } = world;
    // Each server has a client of its own, so that none of them waits at the frozen one.
    const minters = members.map((member, i) =>
      minterOf({ members: [member], facts }, 1, (i + 1) * 1_000_000),
    );
    const acknowledged = () => minters.reduce((sum, minter) => sum + minter.acknowledged.length, 0);
    let isOver = false;
    const clients = minters.map(async (minter) => {
      while (!isOver) await minter.mint();
    });
    const strikes: Record<string, () => Promise<() => Promise<unknown>>> = {
      "a killed leader": async () => {
        const leader = await leaderOf(members);
        await leader.kill();
        return () => leader.restart();
      },
      "a frozen leader": async () => {
        const leader = await leaderOf(members);
        leader.freeze(true);
        return async () => leader.freeze(false);
      },
      "a killed primary": async () => {
        const primary = await database.primary();
        await primary.kill("machine");
        return async () => primary.start();
      },
      "a frozen primary": async () => {
        const primary = await database.primary();
        primary.freeze(true);
        // A watchdog restarts the machine. Without one, Patroni 3.0 can take the lock of the new
        // primary as it wakes up.
        return async () => {
          await primary.kill("machine");
          primary.start();
        };
      },
    };
    const seconds: Record<string, string> = {};
    for (const [name, strike] of Object.entries(strikes)) {
      for (let i = 0; i < 3; i++) {
        const heal = await strike();
        // Requests that were under way when it struck can still be acknowledged.
        const struck = performance.now();
        await pause(500);
        const count = acknowledged();
        while (acknowledged() === count) {
          await pause(10);
          expect(members.map(({ end }) => end?.code)).not.toContain(1);
        }
        seconds[name] =
          `${seconds[name] ?? ""} ${((performance.now() - struck) / 1_000).toFixed(1)}`.trim();
        await heal();
        await database.replicates();
        // Each server has its role again, and mints.
        for (const minter of minters) {
          const before = minter.acknowledged.length;
          await expect.poll(() => minter.acknowledged.length).toBeGreaterThan(before);
        }
      }
    }
    isOver = true;
    await Promise.all(clients);
    console.log({ secondsToNextMint: seconds });
    const held = await vaultsOf(members[0]?.url ?? "", facts.apiKey, facts.users[0]?.userId ?? "");
    expect(
      minters.flatMap((minter) => minter.acknowledged).filter((vaultId) => !held.has(vaultId)),
    ).toEqual([]);
  });

  test("a standby without the newest entries does not take over, and minting waits for one that has them", async () => {
    await using around = await surroundings({ isSynchronous: true });
    const { world, database } = around;
    const minter = minterOf(world, 10);
    await minter.mintFor(2_000);
    const { primary, behind, ahead } = await leaveOneBehind(database, minter);
    await Promise.all([primary.kill("machine"), ahead.kill("machine")]);
    behind.start();
    const mint = minter.mint();
    let isAcknowledged = false;
    void mint.then(() => {
      isAcknowledged = true;
    });
    await pause(BEYOND_TTL_MS);
    expect([await behind.isPrimary(), isAcknowledged]).toEqual([false, false]);
    const reply = await fetch(`${world.members[0]?.url}/api/v1/vaults`, {
      headers: { "x-api-key": world.facts.apiKey },
    });
    expect(await reply.json()).toMatchObject({ status: 503, code: "journal_unavailable" });
    for (const node of [primary, ahead]) node.start();
    await mint;
    await minter.mintFor(1_000);
    await settled(world.members);
    for (const { url } of world.members) {
      const held = await vaultsOf(url, world.facts.apiKey, world.facts.users[0]?.userId ?? "");
      expect([...held].sort()).toEqual([...minter.acknowledged].sort());
    }
    expect(world.members.map(({ end }) => end)).toEqual([null, null, null]);
  });

  test("servers end when a standby without their entries takes over, and do not mix two histories", async () => {
    await using around = await surroundings({ isSynchronous: false });
    const { world, database, folder } = around;
    const { facts, members } = world;
    const minter = minterOf(world, 10);
    await minter.mintFor(2_000);
    await settled(members);
    const kept = minter.acknowledged.length;
    const { primary, behind, ahead } = await leaveOneBehind(database, minter);
    const lost = minter.acknowledged.slice(kept);
    for (const { url } of members) {
      await expect
        .poll(() => vaultsOf(url, facts.apiKey, facts.users[0]?.userId ?? ""))
        .toContain(lost.at(-1));
    }
    await Promise.all([primary.kill("machine"), ahead.kill("machine")]);
    behind.start();
    await expect.poll(() => behind.isPrimary()).toBe(true);
    // With a standby of its own, the database takes writes again.
    ahead.start();
    for (const member of members) {
      await expect.poll(() => member.end?.said ?? "").toContain("journal lacks");
      expect(member.end?.code).toBe(1);
      await expect(member.restart()).rejects.toThrow("does not answer");
      expect(member.end?.said).toContain("holds entries that the cluster's journal lacks");
    }
    const fresh = await world.join("fresh");
    // It can lead once the database has a standby again.
    const look = () =>
      vaultsOf(fresh.url, facts.apiKey, facts.users[0]?.userId ?? "").catch(() => null);
    await expect.poll(look, { interval: 500 }).not.toBeNull();
    const held = (await look()) as ReadonlySet<string>;
    expect(lost.length).toBeGreaterThan(0);
    expect(lost.filter((vaultId) => held.has(vaultId))).toEqual([]);
    verify(join(folder, "fresh"));
  });
});

/**
 * Three servers over a database of Patroni's, each with a path and a machine of its own that a test
 * can bend.
 */
async function surroundings(options: Omit<PatroniOptions, "nodes">) {
  await using stack = new AsyncDisposableStack();
  const folder = await mkdtemp(join(tmpdir(), "mintmark-patroni-"));
  stack.defer(() => rm(folder, { recursive: true, force: true }));
  await emptyFolder(folder);
  const at = join(folder, "database");
  const database = stack.use(await PatroniCluster.start(at, { nodes: NODES, ...options }));
  const library = compileFaults(folder);
  const names = ["a", "b", "c", "copy", "fresh"];
  const links = new Map<string, Link>();
  for (const name of names) links.set(name, stack.use(await database.link()));
  const machines = new Map(names.map((name) => [name, new Machine(folder, name, library)]));
  const urlOf = (name: string) => `postgres://mintmark@127.0.0.1:${links.get(name)?.port}/mintmark`;
  const own = (name: string) => ({
    MINTMARK_JOURNAL: urlOf(name),
    ...machines.get(name)?.environment,
  });
  const world = stack.use(await startServers(folder, own, () => {}));
  const running = stack.move();
  const disposable = { [Symbol.asyncDispose]: () => running.disposeAsync() };
  return { folder, database, links, machines, world, url: urlOf("fresh"), ...disposable };
}

/**
 * Stops a standby that the primary does not wait for, and mints what only the two others have. A
 * frozen one would still find the entries in its socket.
 */
async function leaveOneBehind(database: PatroniCluster, minter: ReturnType<typeof minterOf>) {
  const primary = await database.primary();
  const rows = await primary.query(
    "select application_name as name, sync_state from pg_stat_replication",
  );
  const others = database.nodes.filter((node) => node !== primary);
  const isAwaited = ({ name }: PatroniNode) =>
    rows.some((row) => row.name === name && row.sync_state === "sync");
  const ahead = others.find(isAwaited) ?? (others[0] as PatroniNode);
  const behind = others.find((node) => node !== ahead) as PatroniNode;
  await behind.kill("machine");
  await minter.mintFor(2_000);
  return { primary, ahead, behind };
}
