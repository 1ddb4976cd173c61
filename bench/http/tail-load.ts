import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { createInterface } from "node:readline";
import { runCommand } from "../../scripts/cli/errors.ts";
import { Workload } from "../engine-workload.ts";
import { median } from "../harness.ts";
import { ascending, quantile, READY, saturate, sendPaced } from "./connection.ts";
import { KINDS } from "./measure.ts";
import type { TailPlan, Tenant } from "./tail.ts";

/**
 * One part of the load of `npm run bench:http -- --tail`, as a process of its own: reads a
 * `TailPlan`, gets ready, begins when its standard input ends, and writes its figures; progress on
 * standard error.
 */

/** Where the tokens of each part begin in the first run, and how many each run has. */
const FIRST = { rates: 1e9, singles: 2e9, bulk: 3e9, drop: 4e9 } as const;
const TOKENS = 1e7;
const [BULK, SINGLES] = KINDS as [(typeof KINDS)[0], (typeof KINDS)[0]];
const ROUNDS = 3;

const bodiesOf = function* (next: () => unknown, count: number) {
  for (let i = 0; i < count; i++) yield Buffer.from(JSON.stringify(next()));
};

/** Requests a second that a server answers of each kind alone. */
async function rates({ port, tenants: [first] }: TailPlan) {
  const target = { port, apiKey: first.world.apiKey };
  const workload = new Workload(first.world, FIRST.rates);
  const rateOf = async (kind: typeof BULK, next: () => unknown) => {
    const round = (count: number) => saturate(target, [...bodiesOf(next, count)], kind.connections);
    await round(kind.warmUp);
    const found: number[] = [];
    for (let i = 0; i < ROUNDS; i++) found.push(await round(kind.round));
    return median(found);
  };
  return {
    bulk: await rateOf(BULK, () => workload.bulk()),
    singles: await rateOf(SINGLES, () => workload.single()),
  };
}

/** Ready to send: says so, and waits for the others. */
async function ready(begin: Promise<unknown>): Promise<void> {
  process.stderr.write(`${READY}\n`);
  await begin;
}

async function singles(
  { run, port, rate, seconds, tenants: [first] }: TailPlan,
  begin: Promise<unknown>,
) {
  const workload = new Workload(first.world, FIRST.singles + run * TOKENS);
  const count = Math.ceil(rate.singles * seconds);
  const bodies = [...bodiesOf(() => workload.single(), count)];
  const target = { port, apiKey: first.world.apiKey };
  return sendPaced(target, rate.singles, bodies, () => ready(begin));
}

/** Requests of 1,000 by the second tenant, whose followers hear of each. */
async function bulk(
  { run, port, rate, seconds, followers, tenants: [, second] }: TailPlan,
  begin: Promise<unknown>,
) {
  const workload = new Workload(second.world, FIRST.bulk + run * TOKENS);
  const heard = { bytes: 0 };
  const sockets: Socket[] = [];
  for (let i = 0; i < followers; i++) sockets.push(follow(port, second, i, heard));
  await Promise.all(sockets.map((socket) => once(socket, "data")));
  // Made beforehand, because it would take a third of a core.
  const bodies = [...bodiesOf(() => workload.bulk(), Math.ceil(rate.bulk * seconds))];
  const target = { port, apiKey: second.world.apiKey };
  const times = ascending(await sendPaced(target, rate.bulk, bodies, () => ready(begin)));
  for (const socket of sockets) socket.destroy();
  return {
    bulkP50: quantile(times, 0.5),
    bulkP99: quantile(times, 0.99),
    heardMb: heard.bytes / 1e6,
  };
}

/** An open stream of a tenant's events; each key has a few. */
function follow(port: number, { keys }: Tenant, i: number, heard: { bytes: number }): Socket {
  const socket = connect({ port, host: "127.0.0.1" });
  socket.on("data", ({ length }) => {
    heard.bytes += length;
  });
  socket.write(
    `GET /api/v1/events HTTP/1.1\r\nHost: localhost\r\nX-Api-Key: ${keys[i % keys.length]}\r\nAccept: text/event-stream\r\n\r\n`,
  );
  return socket;
}

/** Uploads a drop of the third tenant, which the server then mints. */
async function drop({ run, port, rows, tenants: [, , third] }: TailPlan, begin: Promise<unknown>) {
  const { apiKey, assets } = third.world;
  const url = `http://127.0.0.1:${port}/api/v1/drops`;
  const query = new URLSearchParams({
    assetId: assets.counted,
    dataAvailabilityMode: "validium",
  });
  const lines = Array.from(
    { length: rows },
    (_, i) =>
      `0x${((i % 1_000) + 1).toString(16).padStart(40, "0")},${FIRST.drop + run * TOKENS + i}\n`,
  );
  const headers = { "x-api-key": apiKey, "content-type": "text/csv" };
  const body = Buffer.from(`ownerAddress,tokenId\n${lines.join("")}`);
  // Otherwise this process would collect a million strings while the server is measured.
  lines.length = 0;
  await ready(begin);
  const answer = await fetch(`${url}?${query}`, { method: "POST", headers, body });
  const text = await answer.text();
  if (answer.status !== 202) throw new Error(`the drop was answered with ${text}`);
  process.stderr.write("the drop is uploaded\n");
  return { dropId: (JSON.parse(text) as { readonly dropId: string }).dropId };
}

type LoadPart = (plan: TailPlan, begin: Promise<unknown>) => Promise<object>;

const PARTS: Readonly<Record<string, LoadPart>> = {
  rates,
  singles,
  bulk,
  drop,
};

await runCommand(async () => {
  const part = PARTS[process.argv[2] ?? ""];
  if (part === undefined) throw new Error("there is no such part");
  const input = createInterface({ input: process.stdin });
  const begin = once(input, "close");
  const [plan] = (await once(input, "line")) as [string];
  const figures = await part(JSON.parse(plan) as TailPlan, begin);
  process.stdout.write(JSON.stringify(figures));
});
