import { type ChildProcess, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { join } from "node:path";
import { Level } from "level";
import { afterAll, beforeAll, expect, test } from "vitest";
import { ClusterNode, PostgresJournal } from "../../core/cluster/index.ts";
import { PREFIX } from "../../core/store/store-keys.ts";
import { type Minter, minterOf, vaultsOf } from "../../scripts/cluster/world.ts";
import { freePort } from "../../scripts/sandbox/process.ts";
import { cleanEnvironment, SERVER, settingsOf } from "../cli/cli.ts";
import { knownAsset, newTenant, SETTLEMENT, type TestTenant } from "../core/engine/fixture.ts";
import { at } from "../settlement/fixture.ts";
import { type TestDatabase, testDatabase } from "./database.ts";

// Servers of 1.0, which this build is, and of the made-up next version of test/golden/hooks.ts, on
// one journal.

const KEY = randomBytes(32);
const SHARD = `${SETTLEMENT.chainId}-${SETTLEMENT.contract.slice(2, 18).toLowerCase()}`;
const NEXT = new URL("../golden/hooks.ts", import.meta.url).href;

let database: TestDatabase;
let tenant: TestTenant;
let minter: Minter;
const servers: Server[] = [];
beforeAll(async () => {
  database = await testDatabase();
  await using node = await ClusterNode.join({
    store: join(database.folder, "first"),
    journal: await PostgresJournal.open({ url: database.primary.url, shard: SHARD, keys: [KEY] }),
    server: { name: "first", url: "http://127.0.0.1:1" },
    settlement: SETTLEMENT,
    environment: "sandbox",
    createIfMissing: true,
  });
  const { engine } = await node.next();
  const asset = await knownAsset(engine, "erc721");
  tenant = await newTenant(engine, [asset]);
  const facts = {
    apiKey: tenant.token,
    users: tenant.users,
    assets: [{ assetId: asset, standard: "erc721" }],
  };
  minter = minterOf({ members: servers, facts: facts as never }, 3);
});
afterAll(async () => {
  for (const { child } of servers) child.kill("SIGKILL");
  await database[Symbol.asyncDispose]();
});

interface Server {
  readonly name: string;
  readonly url: string;
  readonly child: ChildProcess;
  readonly store: string;
  said: string;
}

async function start(name: string, version: "1.0" | "1.1", die = ""): Promise<Server> {
  const port = await freePort(0);
  const store = join(database.folder, name);
  const hooks = version === "1.1" ? ["--import", NEXT] : [];
  const child = spawn(process.execPath, [...hooks, ...SERVER], {
    cwd: new URL("../../", import.meta.url).pathname,
    stdio: ["ignore", "ignore", "pipe"],
    env: {
      ...cleanEnvironment({
        MINTMARK_JOURNAL: database.primary.url,
        MINTMARK_JOURNAL_KEYS: KEY.toString("hex"),
        ...settingsOf(store, SETTLEMENT),
        MINTMARK_SERVER_NAME: name,
        MINTMARK_PORT: `${port}`,
        MINTMARK_LEASE_SECONDS: "2",
        MINTMARK_RATE_UNITS: "10000000",
      }),
      TEST_DIE: die,
    },
  });
  const server: Server = { name, url: `http://127.0.0.1:${port}`, child, store, said: "" };
  child.stderr?.on("data", (text) => (server.said += text));
  servers.push(server);
  return server;
}

const role = ({ url }: Server) =>
  fetch(`${url}/healthz`).then(
    ({ ok, headers }) => (ok ? (headers.get("mintmark-role") ?? "waits") : "starts"),
    () => "away",
  );
const readiness = ({ url }: Server) =>
  fetch(`${url}/readyz`).then((answer) => answer.text(), String);
async function stop({ child }: Server): Promise<unknown> {
  const ended = once(child, "exit");
  child.kill("SIGTERM");
  return ended;
}
/** Mints of everybody that have been acknowledged go on. */
async function mintsOn(): Promise<void> {
  const { length } = minter.acknowledged;
  await expect.poll(() => minter.acknowledged.length).toBeGreaterThan(length + 30);
}

test("a cluster goes to the next version server by server while it mints, and a kill half-way costs nothing", async () => {
  const one = await start("one", "1.0");
  await expect.poll(() => role(one)).toBe("leader");
  const two = await start("two", "1.0");
  await expect.poll(() => role(two)).toBe("standby");
  let isOver = false;
  const minting = (async () => {
    while (!isOver) await minter.mint();
  })();
  await mintsOn();

  // The standby first: the next version only follows while the old one leads.
  await stop(two);
  const doomed = await start("two", "1.1", "step");
  await expect.poll(() => readiness(doomed)).toContain("older version");
  await mintsOn();
  expect([await role(one), await role(doomed)]).toEqual(["leader", "waits"]);

  // The leader hands over, and the next version dies before its step is written: the older one goes
  // on.
  const died = once(doomed.child, "exit");
  await stop(one);
  expect(await died).toEqual([null, "SIGKILL"]);
  const again = await start("one", "1.0");
  await expect.poll(() => role(again)).toBe("leader");
  await mintsOn();

  const third = await start("three", "1.0");
  await expect.poll(() => role(third)).toBe("standby");
  const upgraded = await start("two", "1.1");
  await expect.poll(() => readiness(upgraded)).toContain("older version");
  // Somebody forgot the third: it must not lead now, and it stops when the step comes.
  third.child.kill("SIGSTOP");
  await stop(again);
  await expect.poll(() => role(upgraded)).toBe("leader");
  const stopped = once(third.child, "exit");
  third.child.kill("SIGCONT");
  expect(await stopped).toEqual([1, null]);
  expect(third.said).toMatch(
    /journal has format 12, .* reads format 11\. .* Use the version 1\.1\.0/,
  );
  await mintsOn();
  const last = await start("one", "1.1");
  await expect.poll(() => role(last)).toBe("standby");
  await mintsOn();
  // A server that was killed comes back; the other one leads meanwhile.
  upgraded.child.kill("SIGKILL");
  await expect.poll(() => role(last)).toBe("leader");
  await mintsOn();

  isOver = true;
  await minting;
  const found = await vaultsOf(last.url, tenant.token, at(tenant.users, 0).userId);
  const { acknowledged } = minter;
  expect(new Set(acknowledged).size).toBe(acknowledged.length);
  expect([...found].toSorted()).toEqual(acknowledged.toSorted());
  await stop(last);
  await using level = new Level<Buffer, Buffer>(last.store, {
    keyEncoding: "buffer",
    valueEncoding: "buffer",
  });
  const held = async (prefix: number) =>
    (await level.keys({ gte: Buffer.from([prefix]), lt: Buffer.from([prefix + 1]) }).all()).length;
  expect([await held(0xee), await held(PREFIX.format)]).toEqual([await held(PREFIX.user), 1]);
  // There is no way back.
  const back = await start("one", "1.0");
  expect(await once(back.child, "exit")).toEqual([1, null]);
  expect(back.said).toContain("Use the version 1.1.0");
});
