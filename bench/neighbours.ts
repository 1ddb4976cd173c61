import { readFile } from "node:fs/promises";
import { Agent, type RequestOptions, request } from "node:http";
import { connect } from "node:net";
import { join } from "node:path";
import { performance } from "node:perf_hooks";
import { text } from "node:stream/consumers";
import { setTimeout as sleep } from "node:timers/promises";
import { runCommand } from "../scripts/cli/errors.ts";
import { answerHelp } from "../scripts/cli/exit.ts";
import { progressLine } from "../scripts/cli/output.ts";
import { open, settle } from "./engine-workload.ts";
import { inFolder } from "./harness.ts";
import { quantile } from "./http/connection.ts";
import { startServer } from "./http/server.ts";

/**
 * `npm run bench:neighbours`: what one tenant pays for another one that stays within its limits:
 * thousands of revoked keys, uploads of bad rows, connections that are closed at once. A second
 * server, which has no such tenant, is measured in turn with the first, since other work on the
 * machine slows both.
 */

const REVOKED_KEYS = 9_000;
const UPLOADS = 10;
const BAD_ROWS = `ownerAddress,tokenId\n${"x,y\n".repeat(400_000)}`;
const CLOSED_CONNECTIONS = 6_000;
const SECONDS = 8;
const ROUNDS = 12;
const REQUESTS = 200;
/** Milliseconds of a tick, in which /proc counts CPU time. */
const TICK_MS = 10;

await runCommand(async () => {
  answerHelp(
    "Usage: npm run bench:neighbours\n\nMeasures what a tenant pays for another one that stays within its limits, in some minutes.\n",
  );
  const line = progressLine();
  await inFolder(async (folder) => {
    line.show("revoking keys");
    await using attacked = await startTenant(join(folder, "attacked"), REVOKED_KEYS);
    await using beside = await startTenant(join(folder, "beside"), 0);
    const both = [attacked, beside] as const;
    line.show("requests with bearer tokens");
    for (const each of both) await each.cpuOfRequest();
    const cpu: number[][] = [[], []];
    for (let round = 0; round < ROUNDS; round++)
      for (const [i, each] of both.entries()) cpu[i]?.push(await each.cpuOfRequest());
    line.show("before the uploads");
    const idle = await Promise.all(both.map((each) => each.measure(SECONDS)));
    line.show("during the uploads");
    const uploads = new AbortController();
    const uploading = Array.from({ length: UPLOADS }, (_, i) => attacked.upload(i, uploads.signal));
    const during = await Promise.all(both.map((each) => each.measure(SECONDS)));
    uploads.abort();
    const statuses = (await Promise.all(uploading)).flat();
    line.show("after closed connections");
    await attacked.openAndClose();
    const healthz = await Promise.all(both.map((each) => each.time({ path: "/healthz" })));
    line.clear();
    const [one = 0, other = 0] = cpu.map((all) =>
      quantile(
        all.toSorted((a, b) => a - b),
        0.5,
      ),
    );
    const bearer = { withRevokedKeys: one, without: other, ratio: one / other };
    const counts = Object.fromEntries(
      [...Map.groupBy(statuses, (status) => status)].map(([status, all]) => [status, all.length]),
    );
    const report = { cpuMsOfBearerRequest: bearer, uploads: counts, idle, during, healthz };
    process.stdout.write(`${JSON.stringify(report, null, 2)}\n`);
  });
});

/** A server with the default limits and two tenants: one asks, the keys are the other's. */
async function startTenant(store: string, revoked: number) {
  const { world, keys } = await prepare(store, revoked);
  const server = await startServer("engine", store, world, [], {});
  const agent = new Agent({ keepAlive: true });
  const send = async (options: RequestOptions, body = "") => {
    const asked = request({ host: "127.0.0.1", port: server.port, agent, ...options });
    const answered = new Promise<{ status: number; body: string }>((resolve, reject) => {
      asked.on("error", reject).on("response", (reply) => {
        text(reply).then((body) => resolve({ status: reply.statusCode ?? 0, body }), reject);
      });
    });
    asked.end(body);
    return answered;
  };
  const time = async (options: RequestOptions) => {
    const begin = performance.now();
    await send(options);
    return performance.now() - begin;
  };
  const { body } = await send(
    {
      method: "POST",
      path: "/oauth/token",
      headers: { "content-type": "application/x-www-form-urlencoded" },
    },
    `grant_type=client_credentials&${credentialsOf(world.apiKey)}`,
  );
  const { access_token: token } = JSON.parse(body) as { access_token: string };
  const limits = { path: "/api/v1/limits", headers: { authorization: `Bearer ${token}` } };
  return {
    time,
    /** CPU milliseconds of the server for one request. */
    async cpuOfRequest(): Promise<number> {
      const before = await cpuOf(server.pid);
      for (let i = 0; i < REQUESTS; i++) await send(limits);
      return ((await cpuOf(server.pid)) - before) / REQUESTS;
    },
    /**
     * Milliseconds of answers while the tenant asks 50 times a second and a monitor five times, and
     * of CPU that the server used meanwhile.
     */
    async measure(seconds: number) {
      const before = await cpuOf(server.pid);
      const times: Promise<number>[] = [];
      const healthz: Promise<number>[] = [];
      for (let i = 0; i < seconds * 50; i++) {
        times.push(time(limits));
        if (i % 10 === 0) healthz.push(time({ path: "/healthz", agent: false }));
        await sleep(20);
      }
      const all = (await Promise.all(times)).toSorted((a, b) => a - b);
      const monitor = Math.max(...(await Promise.all(healthz)));
      const cpuMs = (await cpuOf(server.pid)) - before;
      return { p50: quantile(all, 0.5), p99: quantile(all, 0.99), healthzMax: monitor, cpuMs };
    },
    /** Uploads bad rows one time after the other. Returns the statuses of the answers. */
    async upload(i: number, signal: AbortSignal): Promise<number[]> {
      const headers = { "x-api-key": keys[i % keys.length], "content-type": "text/csv" };
      const statuses: number[] = [];
      while (!signal.aborted) {
        const drop = { method: "POST", path: "/api/v1/drops", headers, agent: false };
        statuses.push((await send(drop, BAD_ROWS)).status);
        if (statuses.at(-1) === 429) await sleep(100);
      }
      return statuses;
    },
    /** Opens each connection from an address of its own. */
    async openAndClose(): Promise<void> {
      for (let i = 0; i < CLOSED_CONNECTIONS; i++) {
        const localAddress = `127.1.${i >> 8}.${i & 255}`;
        const socket = connect({ port: server.port, host: "127.0.0.1", localAddress });
        socket.on("error", () => {}).on("connect", () => socket.destroy());
        if (i % 200 === 0) await sleep(5);
      }
    },
    async [Symbol.asyncDispose]() {
      agent.destroy();
      await server[Symbol.asyncDispose]();
    },
  };
}

function credentialsOf(apiKey: string): string {
  return `client_id=${apiKey.split("_")[2]}&client_secret=${apiKey}`;
}

/** Milliseconds of CPU that a process has used, on Linux. */
async function cpuOf(pid: number): Promise<number> {
  const stat = await readFile(`/proc/${pid}/stat`, "latin1");
  const [user = "0", system = "0"] = stat
    .slice(stat.lastIndexOf(")") + 2)
    .split(" ")
    .slice(11);
  return (Number(user) + Number(system)) * TICK_MS;
}

async function prepare(store: string, revoked: number) {
  await using engine = await open(store);
  const world = await settle(engine);
  const { applicationId } = await engine.applications.create({ name: "neighbour" });
  for (let i = 0; i < revoked; i += 90) {
    const issued = Array.from({ length: 90 }, () => engine.keys.issue(applicationId));
    const ids = (await Promise.all(issued)).map(({ key }) => key.keyId);
    await Promise.all(ids.map((keyId) => engine.keys.revoke(keyId)));
  }
  const keys = Array.from({ length: 5 }, () => engine.keys.issue(applicationId));
  return { world, keys: (await Promise.all(keys)).map(({ secret }) => secret) };
}
