import { once } from "node:events";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import { runCommand } from "../scripts/cli/errors.ts";
import { progressLine } from "../scripts/cli/output.ts";
import { open, settle } from "./engine-workload.ts";
import { FLAG, inFolder, start } from "./harness.ts";
import { ascending, quantile, sendPaced } from "./http/connection.ts";
import { startServer } from "./http/server.ts";

/**
 * `npm run bench:attacks`: the response times of one tenant while others attack the server by every
 * known way. The attackers and the load take their part of this machine. So a second server, which
 * nobody attacks, is measured at the same time, besides the same server before the attacks.
 */

const USAGE = `Usage: npm run bench:attacks -- [options]

  --seconds <n>     how long to measure, before the attacks and while all go on; default 60
  --help            print this

Prints milliseconds as JSON. Ends with 1 when a mint of the tenant fails or /readyz is not 200, or when the tenant's p99
during the attacks is twice its p99 before them, or twice that of the server which nobody attacks.
`;

/** Mints a second of the tenant, each in its own request. */
const RATE = 50;
const ATTACKER_KEYS = 5;
/** Until all attacks have begun. */
const BEGIN_SECONDS = 10;

await runCommand(async () => {
  const { values } = parseArgs({
    options: { seconds: { type: "string", default: "60" }, help: FLAG },
  });
  if (values.help) return void process.stdout.write(USAGE);
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
      input: { port: attacked.port, keys: attacked.keys },
    });
    const ended = once(attacker, "exit");
    const measured = new AbortController();
    try {
      await sleep(BEGIN_SECONDS * 1_000);
      const watched = readiness(attacked.port, measured.signal);
      const during = await measure("during the attacks");
      measured.abort();
      const ready = await watched;
      const p99 = during.attacked?.p99 ?? Number.NaN;
      const ratios = [before.attacked, during.beside].map(
        (idle) => p99 / (idle?.p99 ?? Number.NaN),
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

/** A server with the default limits and two tenants: one mints, the keys are the other's. */
async function startTenant(store: string) {
  const { world, keys } = await prepare(store);
  const server = await startServer("engine", store, world, [], {});
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
      const times = ascending(await sendPaced(target, RATE, bodies));
      return { p50: quantile(times, 0.5), p99: quantile(times, 0.99) };
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
