import { readFile } from "node:fs/promises";
import { json } from "node:stream/consumers";
import { runCommand } from "../../scripts/command.ts";
import { median } from "../harness.ts";
import { saturate, type Target } from "./connection.ts";
import { type Bodies, bodiesOf, type Kind, type LoadFigures, type LoadPlan, type LoadResult } from "./load.ts";
import { quantile, sendPaced } from "./paced.ts";

/** The load as a separate process: reads a `LoadPlan`, writes a `LoadResult`; progress on standard error. */

/** Ticks of the scheduler's accounting in a second; constant on every Linux that Node supports. */
const TICKS = 100;

/** CPU time of a process with all its threads, in µs; NaN without /proc. */
async function cpuOf(pid: number): Promise<number> {
  const stat = await readFile(`/proc/${pid}/stat`, "utf8").catch(() => "");
  // The second field is the program's name in brackets, and can contain spaces.
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return ((Number(fields[11] ?? Number.NaN) + Number(fields[12])) / TICKS) * 1e6;
}

async function measure(kind: Kind, target: Target, serverPid: number, bodies: Bodies): Promise<LoadFigures> {
  process.stderr.write(`${kind.name}: warming up\n`);
  await saturate(target, bodies(kind, kind.warmUp), kind.connections);
  const rates: number[] = [];
  const cpus: number[] = [];
  for (let i = 0; i < kind.rounds; i++) {
    process.stderr.write(`${kind.name}: round ${i + 1} of ${kind.rounds}\n`);
    const round = bodies(kind, kind.round);
    const before = await cpuOf(serverPid);
    rates.push(await saturate(target, round, kind.connections));
    cpus.push(((await cpuOf(serverPid)) - before) / kind.round);
  }
  const rate = median(rates);
  process.stderr.write(`${kind.name}: at half of ${rate.toFixed(0)} requests/s\n`);
  const halfBodies = bodies(kind, Math.ceil((rate / 2) * kind.halfSeconds));
  const times = await sendPaced(target, rate / 2, halfBodies);
  return { rate, serverCpu: median(cpus), p50: quantile(times, 0.5), p99: quantile(times, 0.99) };
}

await runCommand(async () => {
  const { port, serverPid, world, kinds } = (await json(process.stdin)) as LoadPlan;
  const target = { port, apiKey: world.apiKey };
  const bodies = bodiesOf(world);
  const figures: { -readonly [name in keyof LoadResult]: LoadFigures } = {};
  for (const kind of kinds) figures[kind.name] = await measure(kind, target, serverPid, bodies);
  process.stdout.write(JSON.stringify(figures));
});
