import { once } from "node:events";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import { runCommand } from "../scripts/cli/errors.ts";
import { progressLine } from "../scripts/cli/output.ts";
import { open, settle } from "./engine-workload.ts";
import { FLAG, inFolder, start } from "./harness.ts";
import { ATTACKS } from "./http/attacker.ts";
import { ascending, quantile, sendPaced } from "./http/connection.ts";
import { startServer } from "./http/server.ts";

/**
 * `npm run bench:attacks`: the response times of one tenant while others attack the server by every
 * known way. The attackers and the load take their part of this machine. So a second server, which
 * nobody attacks, is measured at the same time, besides the same server before the attacks.
 */

const USAGE = `Usage: npm run bench:attacks -- [options]

  --seconds <n>     how long to measure, before the attacks and while they go on; default 60
  --only <a,b>      of the attacks only these: ${Object.keys(ATTACKS).join(", ")}
  --help            print this

Prints milliseconds as JSON: of the tenant's mints and reads, and of /healthz. Ends with 1 when a request of the tenant
fails or /readyz is not 200, or when the p99 of its mints during the attacks is twice that before them, or twice that of
the server which nobody attacks.
`;

/** Mints a second of the tenant, each in its own request, and as many reads. */
const RATE = 50;
/** Looks of a monitor at /healthz in a second, each over a new connection. */
const LOOKS = 5;
const ATTACKER_KEYS = 5;
/** Until all attacks have begun. */
const BEGIN_SECONDS = 10;

await runCommand(async () => {
  const { values } = parseArgs({
    options: { seconds: { type: "string", default: "60" }, only: { type: "string" }, help: FLAG },
  });
  if (values.help) return void process.stdout.write(USAGE);
  const attacks = values.only?.split(",") ?? Object.keys(ATTACKS);
  const unknown = attacks.find((name) => !Object.hasOwn(ATTACKS, name));
  if (unknown !== undefined)
    throw new Error(`there is no attack ${JSON.stringify(unknown)}\n\n${USAGE}`);
  const line = progressLine();
  await inFolder(async (folder) => {
    await using attacked = await startTenant(join(folder, "attacked"));
    await using beside = await startTenant(join(folder, "beside"));
    const measure = async (name: string) => {
      line.show(name);
      const [one, other] = await Promise.all(
        [attacked, beside].map((each) => each.measure(Number(values.seconds))),
      );
      return { attacked: one, beside: other };
    };
    await measure("warming up");
    const before = await measure("before the attacks");
    line.show("the attacks begin");
    const { child: attacker } = start("./http/attacker.ts", [], {
      input: { port: attacked.port, keys: attacked.keys, attacks },
    });
    const ended = once(attacker, "exit");
    const measured = new AbortController();
    try {
      await sleep(BEGIN_SECONDS * 1_000);
      const watched = readiness(attacked.port, measured.signal);
      const during = await measure("during the attacks");
      measured.abort();
      const ready = await watched;
      const p99 = during.attacked?.mints.p99 ?? Number.NaN;
      const ratios = [before.attacked, during.beside].map(
        (idle) => p99 / (idle?.mints.p99 ?? Number.NaN),
      );
      line.clear();
      process.stdout.write(`${JSON.stringify({ before, during, ready, ratios }, null, 2)}\n`);
      if (!ratios.every((ratio) => ratio < 2) || ready.some((status) => status !== 200))
        process.exitCode = 1;
    } finally {
      measured.abort();
      attacker.kill("SIGKILL");
      await ended;
    }
  });
});

/** Each status that /readyz had, asked once a second; 0 when the server did not answer. */
async function readiness(port: number, signal: AbortSignal): Promise<number[]> {
  const statuses = new Set<number>();
  do {
    const answer = await fetch(`http://127.0.0.1:${port}/readyz`).catch(() => null);
    statuses.add(answer?.status ?? 0);
    await sleep(1_000);
  } while (!signal.aborted);
  return [...statuses];
}

/** Milliseconds of reads at an even rate, ascending. Rejects when one is not answered well. */
async function getPaced(
  url: string,
  rate: number,
  seconds: number,
  how: RequestInit,
): Promise<number[]> {
  const timed = async () => {
    const start = performance.now();
    const answer = await fetch(url, how);
    await answer.arrayBuffer();
    if (!answer.ok) throw new Error(`${url} was answered with ${answer.status}`);
    return performance.now() - start;
  };
  const times: Promise<number>[] = [];
  for (let i = 0; i < rate * seconds; i++) {
    const one = timed();
    // A failure is the result of the whole, which has servers to stop.
    one.catch(() => {});
    times.push(one);
    await sleep(1_000 / rate);
  }
  return (await Promise.all(times)).sort((a, b) => a - b);
}

function quantiles(times: readonly number[]) {
  return { p50: quantile(times, 0.5), p99: quantile(times, 0.99), most: times.at(-1) };
}

/** A server with the default limits and two tenants: one mints, the keys are the other's. */
async function startTenant(store: string) {
  const { world, keys } = await prepare(store);
  const server = await startServer("engine", store, world, [], {});
  const url = `http://127.0.0.1:${server.port}`;
  let token = 0;
  const body = () => {
    const mint = {
      assetId: world.assets.counted,
      tokenId: `${token++}`,
      amount: 1,
      dataAvailabilityMode: "validium",
    };
    return Buffer.from(JSON.stringify({ users: [{ userId: world.users[0], mints: [mint] }] }));
  };
  return {
    port: server.port,
    keys,
    async measure(seconds: number) {
      const bodies = Array.from({ length: RATE * seconds }, body);
      const target = { port: server.port, apiKey: world.apiKey };
      const headers = { "x-api-key": world.apiKey };
      const [mints, reads, healthz] = await Promise.all([
        sendPaced(target, RATE, bodies).then(ascending),
        getPaced(`${url}/api/v1/limits`, RATE, seconds, { headers }),
        getPaced(`${url}/healthz`, LOOKS, seconds, { headers: { connection: "close" } }),
      ]);
      return { mints: quantiles(mints), reads: quantiles(reads), healthz: quantiles(healthz) };
    },
    [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
  };
}

async function prepare(store: string) {
  await using engine = await open(store);
  const world = await settle(engine);
  const { applicationId } = await engine.applications.create({ name: "attacker" });
  const keys: string[] = [];
  for (let i = 0; i < ATTACKER_KEYS; i++)
    keys.push((await engine.keys.issue(applicationId)).secret);
  return { world, keys };
}
