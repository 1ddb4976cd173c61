import { json } from "node:stream/consumers";
import { runCommand } from "../../scripts/cli/errors.ts";
import { Workload } from "../engine-workload.ts";
import { cpuOf, median } from "../harness.ts";
import { ascending, quantile, saturate, sendPaced, type Target } from "./connection.ts";
import type { Kind, LoadPlan } from "./measure.ts";

/**
 * The load as a separate process: reads a `LoadPlan`, writes figures; progress on standard error.
 */

/**
 * The figures of a kind, and the bodies of its requests, which are made before the clock starts.
 */
async function measure(
  kind: Kind,
  target: Target,
  serverPid: number,
  bodies: (count: number) => Buffer[],
) {
  const { name, mintsPerRequest, connections } = kind;
  process.stderr.write(`${name}: warming up\n`);
  await saturate(target, bodies(kind.warmUp), connections);
  const rates: number[] = [];
  const cpus: number[] = [];
  for (let i = 0; i < kind.rounds; i++) {
    process.stderr.write(`${name}: round ${i + 1} of ${kind.rounds}\n`);
    const round = bodies(kind.round);
    const before = await cpuOf(serverPid);
    rates.push(await saturate(target, round, connections));
    cpus.push(((await cpuOf(serverPid)) - before) / kind.round);
  }
  const rate = median(rates);
  process.stderr.write(`${name}: at half of ${rate.toFixed(0)} requests/s\n`);
  const requests = bodies(Math.ceil((rate / 2) * kind.halfSeconds));
  const times = ascending(await sendPaced(target, rate / 2, requests));
  return {
    [`${name}Rate`]: rate * mintsPerRequest,
    [`${name}Cpu`]: median(cpus) / mintsPerRequest,
    [`${name}P50`]: quantile(times, 0.5),
    [`${name}P99`]: quantile(times, 0.99),
  };
}

await runCommand(async () => {
  const { port, serverPid, world, kinds } = (await json(process.stdin)) as LoadPlan;
  const workload = new Workload(world);
  const figures = {};
  for (const kind of kinds) {
    const body = () =>
      Buffer.from(JSON.stringify(kind.name === "bulk" ? workload.bulk() : workload.single()));
    const bodies = (count: number) => Array.from({ length: count }, body);
    Object.assign(figures, await measure(kind, { port, apiKey: world.apiKey }, serverPid, bodies));
  }
  process.stdout.write(JSON.stringify(figures));
});
