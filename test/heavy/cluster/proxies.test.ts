import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  leaderOf,
  minterOf,
  settled,
  startWorld,
  vaultsOf,
  type World,
} from "../../../scripts/cluster/world.ts";
import { freePort } from "../../../scripts/sandbox/process.ts";
import { EventStreamClient } from "../../server/sse.ts";

const EXAMPLES = new URL("../../../examples/proxy/", import.meta.url);
const PROXIES = {
  haproxy: { file: "haproxy.cfg", args: (path: string) => ["-f", path], before: () => "" },
  nginx: {
    file: "nginx.conf",
    args: (path: string) => ["-c", path],
    before: (path: string) => `daemon off;\npid ${path}.pid;\nerror_log ${path}.log;\n`,
  },
};
type Name = keyof typeof PROXIES;
const NAMES = Object.keys(PROXIES) as Name[];
const isHere = (name: Name) => existsSync(`/usr/sbin/${name}`);
let folder: string;
let world: World;
const running = new Set<ChildProcess>();
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "mintmark-proxies-"));
  world = await startWorld(folder, () => {});
});
afterAll(async () => {
  for (const proxy of running) proxy.kill("SIGTERM");
  await world[Symbol.asyncDispose]();
  await rm(folder, { recursive: true, force: true });
});

/** Starts a proxy with the example's configuration, in which only addresses are changed. */
async function start(name: Name): Promise<string> {
  const { file, args, before } = PROXIES[name];
  const port = await freePort(0);
  const path = join(folder, file);
  let text = readFileSync(new URL(file, EXAMPLES), "utf8").replace(
    "127.0.0.1:8080",
    `127.0.0.1:${port}`,
  );
  for (const [i, { url }] of world.members.entries())
    text = text.replaceAll(`10.0.0.${7 + i}:3000`, new URL(url).host);
  expect(text).not.toContain("10.0.0.");
  await writeFile(path, before(path) + text);
  const proxy = spawn(`/usr/sbin/${name}`, args(path), { stdio: ["ignore", "inherit", "inherit"] });
  running.add(proxy);
  proxy.once("exit", () => running.delete(proxy));
  const url = `http://127.0.0.1:${port}`;
  await expect
    .poll(() =>
      fetch(`${url}/readyz`).then(
        ({ ok }) => ok,
        () => false,
      ),
    )
    .toBe(true);
  return url;
}

async function stop(): Promise<void> {
  for (const proxy of running) {
    const ended = once(proxy, "exit");
    proxy.kill("SIGTERM");
    await ended;
  }
}

const mintRequest = (tokenId: number, mints: number, dataAvailabilityMode: string) => {
  const { assets, users } = world.facts;
  const assetId = assets.find(({ standard }) => standard === "erc721")?.assetId;
  const wanted = Array.from({ length: mints }, (_, i) => {
    return { assetId, tokenId: `${tokenId + i}`, amount: 1, dataAvailabilityMode };
  });
  return JSON.stringify({ users: [{ userId: users[0]?.userId, mints: wanted }] });
};
let tokens = 10_000_000;
/** The first of so many ids that no other request has. */
const fresh = (count: number) => {
  tokens += count;
  return tokens - count;
};

describe.each(NAMES)("behind %s", (name) => {
  if (!isHere(name)) console.log(`Not run: ${name} is not here (Debian: ${name}).`);

  test.skipIf(!isHere(name))(
    "a client mints, reads its writes on another server, and follows a stream",
    async () => {
      const url = await start(name);
      try {
        const key = { "x-api-key": world.facts.apiKey };
        const events = await EventStreamClient.open(`${url}/api/v1/events`, {
          accept: "text/event-stream",
          ...key,
        });
        const minter = minterOf({ members: [{ url }], facts: world.facts }, 1, fresh(1_000));
        const roles = new Set<string | null>();
        for (let i = 0; i < 12; i++) {
          await minter.mint();
          const read = await fetch(`${url}/api/v1/vaults/${minter.acknowledged.at(-1)}`, {
            headers: { ...key, "mintmark-position": minter.position },
          });
          expect(read.status, await read.text()).toBe(200);
          roles.add(read.headers.get("mintmark-role"));
        }
        expect(roles).toContain("standby");
        const headers = { ...key, "content-type": "application/json" };
        const body = mintRequest(fresh(1), 1, "zk-rollup");
        const minted = await fetch(`${url}/api/v1/mint`, { method: "POST", headers, body });
        const { mintId } = (await minted.json()) as { mintId: string };
        expect(minted.status).toBe(200);
        for (let seen = ""; !seen.includes(mintId); ) seen = JSON.stringify(await events.take(1));
        events.hangUp();
      } finally {
        await stop();
      }
    },
  );

  test.skipIf(!isHere(name))(
    "a client that repeats with its key mints everything once while the leader is killed",
    async () => {
      const url = await start(name);
      const { apiKey, users } = world.facts;
      /** Errors that the proxy did not hide, and the client repeated. */
      const repeated: Record<string, number> = {};
      const acknowledged: string[] = [];
      let isOver = false;
      let slowest = 0;
      const headers = { "x-api-key": apiKey, "content-type": "application/json" };
      const isPassing = (status: number) => [0, 502, 503, 504].includes(status);
      const ask = async (path: string, init: RequestInit) => {
        const reply = await fetch(`${url}${path}`, init).catch(String);
        if (typeof reply === "string") return { status: 0, said: reply };
        return { status: reply.status, said: await reply.text().catch(String) };
      };
      const note = (what: string) => {
        repeated[what] = (repeated[what] ?? 0) + 1;
      };
      const client = async () => {
        while (!isOver) {
          const first = fresh(10);
          const keyed = { ...headers, "idempotency-key": `${name} ${first}` };
          const body = mintRequest(first, 10, "zk-rollup");
          const began = performance.now();
          for (let isMinted = false; !isMinted; ) {
            const { status, said } = await ask("/api/v1/mint", {
              method: "POST",
              headers: keyed,
              body,
            });
            isMinted = status === 200;
            if (isMinted)
              acknowledged.push(
                ...(JSON.parse(said).vaults as { vaultId: string }[]).map((one) => one.vaultId),
              );
            else if (!isPassing(status) && !said.includes("idempotency_in_progress"))
              throw new Error(said);
            else {
              note(`change ${status}`);
              await pause(100);
            }
          }
          slowest = Math.max(slowest, performance.now() - began);
        }
      };
      const reader = async () => {
        while (!isOver) {
          const { status, said } = await ask("/api/v1/vaults?limit=1", { headers });
          if (status !== 200 && !isPassing(status)) throw new Error(said);
          if (status !== 200) note(`read ${status}`);
          await pause(20);
        }
      };
      const clients = Promise.all([client(), client(), client(), client(), reader()]);
      try {
        await pause(1_000);
        const leader = await leaderOf(world.members);
        const before = acknowledged.length;
        await leader.kill();
        await expect.poll(() => acknowledged.length).toBeGreaterThan(before + 100);
        await leader.restart();
        await pause(1_000);
      } finally {
        isOver = true;
        await clients;
        await stop();
      }
      console.log({
        proxy: name,
        acknowledged: acknowledged.length,
        slowestMs: Math.round(slowest),
        repeated,
      });
      await settled(world.members);
      const held = await vaultsOf(world.members[0]?.url ?? "", apiKey, users[0]?.userId ?? "");
      expect(acknowledged.filter((vaultId) => !held.has(vaultId))).toEqual([]);
      expect(new Set(acknowledged).size).toBe(acknowledged.length);
    },
  );
});
