import { type ChildProcess, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import type { FastifyInstance } from "fastify";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { ClusterNode, PostgresJournal } from "../../core/cluster/index.ts";
import { freePort } from "../../scripts/sandbox/process.ts";
import { buildServer } from "../../server/app.ts";
import type { LogOptions } from "../../server/http/log.ts";
import { handleClusterError, serveInCluster } from "../../server/process/forwarding.ts";
import { ENDPOINTS } from "../../server/routes/index.ts";
import { cleanEnvironment, SERVER, settingsOf } from "../cli/cli.ts";
import {
  knownAsset,
  mintOf,
  newTenant,
  requestOf,
  SETTLEMENT,
  type TestTenant,
} from "../core/engine/fixture.ts";
import { EventStreamClient } from "../server/sse.ts";
import { type TestDatabase, testDatabase } from "./database.ts";

const KEY = randomBytes(32);
const SHARD = `${SETTLEMENT.chainId}-${SETTLEMENT.contract.slice(2, 18).toLowerCase()}`;

/** A server of the cluster, in this process. */
interface Serving {
  readonly node: ClusterNode;
  readonly app: FastifyInstance;
  readonly url: string;
}

let database: TestDatabase;
let folder: string;
let leader: Serving;
let standby: Serving;
let tenant: TestTenant;
let asset: string;
beforeAll(async () => {
  database = await testDatabase();
  folder = await mkdtemp(join(tmpdir(), "mintmark-serving-"));
  leader = await serve("leader");
  asset = await knownAsset(leader.node.engine, "erc721");
  tenant = await newTenant(leader.node.engine, [asset]);
  standby = await serve("standby");
});
afterAll(async () => {
  await closeBoth();
  await database[Symbol.asyncDispose]();
  await rm(folder, { recursive: true, force: true });
});

async function closeBoth(): Promise<void> {
  for (const { app, node } of [standby, leader]) {
    await app.close();
    await node.close();
  }
}

interface ServeOptions {
  readonly shard?: string;
  /** The address that the others know; default: the real one. */
  readonly known?: string;
  readonly leaseMs?: number;
  readonly log?: LogOptions;
}

async function serve(name: string, options: ServeOptions = {}): Promise<Serving> {
  const { shard = SHARD, known, leaseMs = 10_000, log } = options;
  const port = await freePort(0);
  const url = `http://127.0.0.1:${port}`;
  const node = await ClusterNode.join({
    store: join(folder, name),
    journal: await PostgresJournal.open({ url: database.primary.url, shard, keys: [KEY] }),
    server: { name, url: known ?? url },
    settlement: SETTLEMENT,
    environment: "sandbox",
    createIfMissing: true,
    leaseMs,
  });
  const { engine, role } = await node.next();
  const onlyReads = role === "standby";
  const app = await buildServer({
    engine,
    onlyReads,
    errorHandler: handleClusterError,
    ...(log && { log }),
    extend: (one) => serveInCluster(one, node, role),
  });
  await app.listen({ host: "127.0.0.1", port });
  return { node, app, url };
}

let tokens = 0;
const ask = (url: string, path: string, headers: Record<string, string> = {}) =>
  fetch(`${url}${path}`, { headers: { "x-api-key": tenant.token, ...headers } });
const mint = (url: string, headers: Record<string, string> = {}) =>
  fetch(`${url}/api/v1/mint`, {
    method: "POST",
    headers: { "x-api-key": tenant.token, "content-type": "application/json", ...headers },
    body: JSON.stringify(requestOf(tenant.users[0], mintOf(asset, ++tokens))),
  });
const reads = ENDPOINTS.filter(
  ({ method, path }) => method === "GET" && /^\/(api|public)\//.test(path),
);

describe("a cluster over HTTP", () => {
  test("a standby takes a mint for its leader, shows it at the answer's position, and streams its event", async () => {
    const events = await EventStreamClient.open(`${standby.url}/api/v1/events`, {
      accept: "text/event-stream",
      "x-api-key": tenant.token,
    });
    const answer = await mint(standby.url);
    expect(answer.status).toBe(200);
    const position = answer.headers.get("mintmark-position") ?? "";
    const { mintId, vaults } = (await answer.json()) as {
      mintId: string;
      vaults: { vaultId: string }[];
    };
    const read = await ask(standby.url, `/api/v1/vaults/${vaults[0]?.vaultId}`, {
      "mintmark-position": position,
    });
    expect([read.status, read.headers.get("mintmark-role")]).toEqual([200, "standby"]);
    for (let seen = ""; !seen.includes(mintId); ) seen = JSON.stringify(await events.take(1));
    events.hangUp();
  });

  test("a standby answers every GET as its leader does", async () => {
    await leader.node.engine.operator.seal("validium");
    const { headers } = await mint(leader.url);
    const position = { "mintmark-position": headers.get("mintmark-position") ?? "" };
    const { data } = (await (await ask(leader.url, "/api/v1/vaults?limit=1")).json()) as {
      data: object[];
    };
    const [vault = {}] = data as Record<string, string>[];
    const [transaction = {}] = (
      (await (await ask(leader.url, "/api/v1/transactions")).json()) as { data: object[] }
    ).data as Record<string, string>[];
    const named: Record<string, string | undefined> = {
      ...vault,
      ...transaction,
      assetId: asset,
      userId: tenant.users[0]?.userId,
      batchId: "validium-0",
    };
    // It counts up to now by default, which is another moment on each server.
    const until = new Date().toISOString();
    let answered = 0;
    for (const { path } of reads.filter((each) => each.path !== "/api/v1/events")) {
      const url =
        path.replaceAll(/\{(\w+)\}/g, (_, name: string) => named[name] ?? "0") +
        (path === "/api/v1/usage" ? `?until=${until}` : "");
      const [one, other] = await Promise.all([
        ask(leader.url, url, position),
        ask(standby.url, url, position),
      ]);
      const [said, same] = await Promise.all([one.text(), other.text()]);
      expect(other.status, url).toBe(one.status);
      if (one.ok) expect(same, url).toBe(said);
      answered += one.ok ? 1 : 0;
    }
    expect(answered).toBeGreaterThan(12);
  });

  test("while the journal is away both say so, and both go on by themselves", async () => {
    database.standby.freeze(true);
    // This one waits: nobody knows whether the journal has it.
    const waiting = mint(leader.url, { "idempotency-key": "waits" });
    try {
      const codes = async () => {
        const answers = [
          await mint(leader.url),
          await mint(standby.url),
          await ask(leader.url, "/api/v1/vaults"),
        ];
        const said = await Promise.all(
          answers.map(async (answer) => ((await answer.json()) as { code: string }).code),
        );
        return [...said, ...answers.map(({ headers }) => headers.get("retry-after"))];
      };
      await expect.poll(() => leader.node.fault).not.toBeNull();
      const away = Array(3).fill("journal_unavailable");
      // Until it has heard nothing for five seconds, the standby only knows that nobody leads.
      await expect.poll(codes).toEqual([...away, "1", "1", "1"]);
    } finally {
      database.standby.freeze(false);
    }
    expect((await waiting).status).toBe(200);
    await expect.poll(async () => (await mint(standby.url)).status).toBe(200);
  });

  test("after a takeover the other server mints, and a repeat with the same key is the same mint", async () => {
    const before = await mint(standby.url, { "idempotency-key": "over the takeover" });
    const repeated = tokens;
    const third = await serve("third");
    await leader.node.close();
    const over = await ask(leader.url, "/api/v1/vaults");
    expect([over.status, await over.json()]).toMatchObject([503, { code: "not_leader" }]);
    await leader.app.close();
    // Longer than a standby relies on what the old leader said.
    await pause(300);
    // Nobody serves as the leader until one of them is started anew below.
    const servers = [standby, third];
    // The one at the new leader may end with its server.
    const during = servers.map(({ url }) => mint(url).catch(() => null));
    await expect.poll(() => servers.some(({ node }) => node.isLeader)).toBe(true);
    const led = servers.findIndex(({ node }) => node.isLeader);
    const { node, app, url } = servers[led] as Serving;
    await app.close();
    const { engine, role } = await node.next();
    const anew = await buildServer({ engine, extend: (one) => serveInCluster(one, node, role) });
    await anew.listen({ host: "127.0.0.1", port: Number(new URL(url).port) });
    standby = { node, app: anew, url };
    // A change waits at a standby for the new leader.
    expect((await during[1 - led])?.status).toBe(200);
    const newest = tokens;
    tokens = repeated - 1;
    const after = await mint(standby.url, { "idempotency-key": "over the takeover" });
    tokens = newest;
    expect(await after.json()).toEqual(await before.json());
    expect((await mint(standby.url)).status).toBe(200);
    await servers[1 - led]?.app.close();
    await servers[1 - led]?.node.close();
  });

  test("with a long lease, a standby still serves, and logs that it does not reach its leader", async () => {
    // The default address on two machines is wrong like this: the leader's address is the other
    // server's own.
    const wrong = {
      shard: "wrong-url",
      known: `http://127.0.0.1:${await freePort(0)}`,
      leaseMs: 60_000,
    };
    const one = await serve("one", wrong);
    const said: string[] = [];
    const stream = { write: (line: string) => void said.push(line) };
    const two = await serve("two", { ...wrong, log: { level: "error", stream } });
    const refused = await mint(two.url);
    expect([refused.status, await refused.json()]).toMatchObject([503, { code: "not_leader" }]);
    expect(said.join()).toContain("check MINTMARK_SERVER_URL of the leader");
    // The request took longer than a standby relies on a silent leader.
    expect(two.node.fault).toBeNull();
    for (const { app, node } of [two, one]) {
      await app.close();
      await node.close();
    }
  });

  test("what standbys sent on to a leader that freezes is answered as documented, and one of them mints", async () => {
    await closeBoth();
    const servers = [await startProcess(), await startProcess(), await startProcess()];
    const roles = () =>
      Promise.all(
        servers.map(({ url }) =>
          ask(url, "/healthz").then(({ headers }) => headers.get("mintmark-role")),
        ),
      );
    try {
      await expect.poll(() => roles().catch(() => [])).toContain("leader");
      const led = (await roles()).indexOf("leader");
      const others = servers.filter((_, i) => i !== led);
      const underWay = new Set<Promise<string>>();
      const said = async (url: string) => {
        const answer = await mint(url);
        return answer.ok ? "minted" : ((await answer.json()) as { code: string }).code;
      };
      let isOver = false;
      const client = async (url: string) => {
        while (!isOver) {
          const answered = said(url).catch(String);
          underWay.add(answered);
          await answered;
          underWay.delete(answered);
        }
      };
      const clients = Array.from({ length: 8 }, (_, i) => client(others[i % 2]?.url ?? ""));
      await Promise.all([...underWay]);
      servers[led]?.child.kill("SIGSTOP");
      const answers = await Promise.all([...underWay]);
      isOver = true;
      await Promise.all(clients);
      expect(answers.filter((each) => each !== "minted" && each !== "not_leader")).toEqual([]);
      expect(answers).toContain("not_leader");
      for (const { url } of others) await expect.poll(() => said(url).catch(String)).toBe("minted");
    } finally {
      for (const { child } of servers) child.kill("SIGKILL");
    }
  });

  test("a server that starts while PostgreSQL is away listens, says so, and joins when it is back, but not a database without its entries", async () => {
    await closeBoth();
    await database.primary.stop();
    const { child, url, store } = await startProcess();
    try {
      const ready = async () => {
        const answer = await ask(url, "/readyz").catch(() => null);
        return { status: answer?.status, ...((await answer?.json()) as object) };
      };
      const reason =
        "the journal has not answered since the start, or a server of an older version leads";
      const waits = {
        status: 503,
        code: "not_ready",
        errors: [{ pointer: "/checks/cluster", detail: reason }],
      };
      await expect.poll(ready).toMatchObject(waits);
      expect((await ask(url, "/healthz")).status).toBe(200);
      const refused = await mint(url);
      expect([refused.status, refused.headers.get("retry-after")]).toEqual([503, "1"]);
      expect(await refused.json()).toMatchObject({ code: "journal_unavailable" });
      await database.primary.start();
      const minted = () =>
        mint(url).then(
          ({ status }) => status,
          () => 0,
        );
      await expect.poll(minted).toBe(200);
      child.kill("SIGTERM");
      expect(await once(child, "exit")).toEqual([0, null]);
    } finally {
      child.kill("SIGKILL");
    }
    await database.primary.query(
      `begin;
      with newest as (delete from mintmark_journal as one where shard = '${SHARD}' and position = (
        select max(position) from mintmark_journal where shard = one.shard) returning position)
      update mintmark_shard set head = newest.position, confirmed = newest.position, hash = before.hash
      from newest join mintmark_journal as before on before.shard = '${SHARD}' and before.position = newest.position - 1
      where id = '${SHARD}';
      commit`,
    );
    const again = (await startProcess({ MINTMARK_STORE: store })).child;
    let said = "";
    again.stderr?.on("data", (text) => (said += text));
    expect(await once(again, "exit")).toEqual([1, null]);
    expect(said).toContain("bring the former primary back");
    expect(said).not.toContain("MINTMARK_CHAIN_ID");
  });

  test("a server that waits for PostgreSQL ends on SIGTERM, and by itself when the settings are wrong", async () => {
    const unknown = new URL(database.primary.url);
    unknown.pathname = "/unknown";
    const [away, wrong] = await Promise.all([
      startProcess({ MINTMARK_JOURNAL: "postgres://mintmark@127.0.0.1:1/postgres" }),
      startProcess({ MINTMARK_JOURNAL: unknown.href }),
    ]);
    let said = "";
    wrong.child.stderr?.on("data", (text) => (said += text));
    expect(await once(wrong.child, "exit")).toEqual([1, null]);
    expect(said).toContain('MINTMARK_JOURNAL: PostgreSQL: database "unknown" does not exist');
    await expect
      .poll(() =>
        ask(away.url, "/healthz").then(
          ({ ok }) => ok,
          () => false,
        ),
      )
      .toBe(true);
    away.child.kill("SIGTERM");
    expect(await once(away.child, "exit")).toEqual([0, null]);
  });
});

/** A server as a process, on a folder of its own. */
async function startProcess(
  settings: Readonly<Record<string, string>> = {},
): Promise<{ readonly child: ChildProcess; readonly url: string; readonly store: string }> {
  const port = await freePort(0);
  const store = join(folder, `process-${port}`);
  const child = spawn(process.execPath, SERVER, {
    cwd: new URL("../../", import.meta.url).pathname,
    stdio: ["ignore", "ignore", "pipe"],
    env: cleanEnvironment({
      MINTMARK_JOURNAL: database.primary.url,
      MINTMARK_JOURNAL_KEYS: KEY.toString("hex"),
      ...settingsOf(store, SETTLEMENT),
      MINTMARK_PORT: `${port}`,
      ...settings,
    }),
  });
  return { child, url: `http://127.0.0.1:${port}`, store };
}
