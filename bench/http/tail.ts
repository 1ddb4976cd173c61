import { join } from "node:path";
import type { Engine } from "../../core/index.ts";
import { CALLERS, open, REQUEST, settle, Workload, type World } from "../engine-workload.ts";
import { fromCallers, inFolder, type Progress, run } from "../harness.ts";
import { type Row, type SectionResult, TAIL_TITLES } from "../report.ts";
import { appendPaced, ascending, type Paced, quantile, READY } from "./connection.ts";
import { KINDS } from "./measure.ts";
import { startServer } from "./server.ts";
import type { Held, Piece } from "./watch.ts";
import type { Ended } from "./watched-server.ts";

/** An application of the load, and keys for its followers. */
export interface Tenant {
  readonly world: World;
  readonly keys: readonly string[];
}

/** The size of the load. */
export interface TailSize {
  /** Vaults that the store holds before, for `verify`. */
  readonly vaults: number;
  readonly rows: number;
  readonly followers: number;
  readonly seconds: number;
}

export const TAIL: TailSize = { vaults: 300_000, rows: 1_000_000, followers: 1_000, seconds: 30 };
export const QUICK_TAIL: TailSize = {
  vaults: 20_000,
  rows: 50_000,
  followers: 100,
  seconds: 5,
};

/** The input of the processes that load a server. */
export interface TailPlan extends Omit<TailSize, "vaults"> {
  /** 0, 1, 2 … on one store. */
  readonly run: number;
  /** Whether the server notes what its event loop does, which costs the loop itself. */
  readonly closely: boolean;
  readonly port: number;
  /** Requests a second. */
  readonly rate: { readonly singles: number; readonly bulk: number };
  /** The tenant of the single mints, that of requests of 1,000, and that of the drop. */
  readonly tenants: readonly [Tenant, Tenant, Tenant];
}

const STREAMS_PER_KEY = 10;

/** The work that a loaded server did. */
export interface Loaded {
  readonly singles: readonly Paced[];
  readonly watched: Ended;
  readonly bulkP50: number;
  readonly bulkP99: number;
  readonly heardMb: number;
  /** Rows of the drop that were minted meanwhile. */
  readonly rows: number;
}

/** Single mints beside all other work, beside a server without an engine, and the disk alone. */
export async function measureTail(size: TailSize, progress: Progress): Promise<SectionResult[]> {
  return inFolder(async (folder) => {
    const store = join(folder, "store");
    progress("filling the store");
    const tenants = await filled(store, size);
    const said = (name: string) => (line: string) => progress(`${name}: ${line}`);
    await using server = await startServer("watched", store, tenants[0].world);
    const asked = {
      ...size,
      run: 0,
      closely: false,
      port: server.port,
      rate: { singles: 0, bulk: 0 },
      tenants,
    };
    const saturated = await part<TailPlan["rate"]>("rates", asked, said("the server"));
    // Half of the load: a quarter of what it answers of each kind.
    const rate = { singles: saturated.singles / 4, bulk: saturated.bulk / 4 };
    const plan = { ...asked, rate };
    const loaded = await loadedBy(plan, said("the server"));
    const closely = { ...plan, run: 1, closely: true };
    const noted = await loadedBy(closely, said("the server, watched"));
    await server[Symbol.asyncDispose]();
    progress("without the engine");
    const bare = await bareBy(plan, join(folder, "bare"), said("without the engine"));
    progress("the disk alone");
    const bytes = KINDS[1]?.writtenBytes ?? 0;
    const disk = await appendPaced(folder, rate.singles, size.seconds, bytes);
    return [
      figuresOf(size, plan, loaded, bare, disk),
      causesOf(noted),
      timelineOf(noted),
      piecesOf(noted.watched.pieces),
    ];
  });
}

async function part<T>(
  name: string,
  plan: TailPlan,
  progress: Progress,
  begin?: Promise<unknown>,
): Promise<T> {
  const how = { input: plan, progress, ...(begin && { begin }) };
  return JSON.parse(await run("./http/tail-load.ts", [name], how));
}

/** Parts that get ready one by one, and then begin at once: their start would cost the server. */
async function together<T extends Readonly<Record<string, unknown>>>(
  names: readonly (keyof T & string)[],
  plan: TailPlan,
  progress: Progress,
  begun: () => Promise<unknown>,
): Promise<T> {
  const begin = Promise.withResolvers<void>();
  const parts: [string, Promise<unknown>][] = [];
  try {
    for (const name of names) {
      const ready = Promise.withResolvers<void>();
      const heard = (line: string) => (line === READY ? ready.resolve() : progress(line));
      const ended = part(name, plan, heard, begin.promise);
      // A failure is the result of the whole, which has others to end.
      ended.catch(() => {});
      parts.push([name, ended]);
      await Promise.race([ready.promise, ended]);
    }
    progress("all parts of the load are ready");
    await begun();
  } finally {
    begin.resolve();
  }
  const figures = await Promise.all(parts.map(async ([name, ended]) => [name, await ended]));
  return Object.fromEntries(figures);
}

type Bulk = Pick<Loaded, "bulkP50" | "bulkP99" | "heardMb">;

/** All at once; ends with the single mints, however far the drop is. */
export async function loadedBy(plan: TailPlan, progress: Progress): Promise<Loaded> {
  const url = `http://127.0.0.1:${plan.port}`;
  const ask = async (path: string, init?: RequestInit) => (await fetch(url + path, init)).json();
  type Parts = { singles: readonly Paced[]; bulk: Bulk; drop: { readonly dropId: string } };
  const { singles, bulk, drop } = await together<Parts>(
    ["bulk", "drop", "singles"],
    plan,
    progress,
    () => ask(`/bench/begin${plan.closely ? "?closely" : ""}`),
  );
  const watched = (await ask("/bench/end")) as Ended;
  const headers = { "x-api-key": plan.tenants[2].world.apiKey };
  const { minted } = (await ask(`/api/v1/drops/${drop.dropId}`, { headers })) as { minted: number };
  return { ...bulk, singles, watched, rows: minted };
}

/** Milliseconds of single mints beside requests of 1,000, and nothing else; ascending. */
async function bareBy(plan: TailPlan, folder: string, progress: Progress) {
  const engine = await open(folder);
  const world = await settle(engine);
  await engine.close();
  await using server = await startServer("bare", folder, world);
  const tenant = { world, keys: [world.apiKey] };
  const own = {
    ...plan,
    port: server.port,
    followers: 0,
    tenants: [tenant, tenant, tenant],
  } as const;
  await part("rates", own, progress);
  type Parts = { singles: readonly Paced[]; bulk: Bulk };
  const { singles } = await together<Parts>(["bulk", "singles"], own, progress, async () => {});
  return ascending(singles);
}

/** A store with vaults, and the tenants of the load. */
export async function filled(store: string, size: TailSize): Promise<TailPlan["tenants"]> {
  const engine = await open(store);
  const world = await settle(engine);
  const workload = new Workload(world);
  const requests = Array.from({ length: size.vaults / REQUEST }, () => workload.bulk());
  await fromCallers(CALLERS, requests, (request) => engine.mint(world.principal, request));
  const second = await neighbour(engine, world, size.followers / STREAMS_PER_KEY);
  const third = await neighbour(engine, world, 0);
  await engine.close();
  return [{ world, keys: [] }, second, third];
}

/** Another application that mints the same assets. */
async function neighbour(engine: Engine, { assets }: World, count: number): Promise<Tenant> {
  const { applicationId } = await engine.applications.create({ name: "neighbour" });
  for (const assetId of Object.values(assets)) await engine.assets.enable(applicationId, assetId);
  const users: string[] = [];
  for (let i = 1; i <= 1_000; i++) {
    const ownerAddress = `0x${i.toString(16).padStart(40, "0")}` as const;
    users.push((await engine.users.create(applicationId, { ownerAddress })).userId);
  }
  const keys: string[] = [];
  for (let i = 0; i < Math.max(1, count); i++)
    keys.push((await engine.keys.issue(applicationId)).secret);
  const [apiKey = ""] = keys;
  const principal = await engine.keys.authenticate(apiKey);
  return { world: { principal, apiKey, users, assets }, keys };
}

const QUANTILES = [
  { key: "p50", label: "p50", unit: "ms", better: "lower" },
  { key: "p99", label: "p99", unit: "ms", better: "lower" },
  { key: "p999", label: "p99.9", unit: "ms", better: "lower" },
  { key: "most", label: "longest", unit: "ms", better: "lower" },
] as const;

function quantiles(times: readonly number[]) {
  return {
    p50: quantile(times, 0.5),
    p99: quantile(times, 0.99),
    p999: quantile(times, 0.999),
    most: times.at(-1) ?? null,
  };
}

function figuresOf(
  { vaults, seconds, followers }: TailSize,
  { rate }: TailPlan,
  { singles, watched, bulkP50, bulkP99, heardMb, rows }: Loaded,
  bare: readonly number[],
  disk: readonly number[],
): SectionResult {
  const count = (value: number) => Math.round(value).toLocaleString("en-US");
  return {
    name: "tail",
    title: TAIL_TITLES[0],
    method:
      "`npm run bench:http -- --tail`: how long single mints take while requests of 1,000, seals, KZG, a drop, `verify` " +
      `and ${count(followers)} followers of events go on in the same server. Half load: a quarter of the rate that the ` +
      `server has with requests of 1 alone, and of 1,000 alone; here ${count(rate.singles)} and ` +
      `${count(rate.bulk)} requests a second, for ${seconds} s, over a store of ${count(vaults)} vaults. Meanwhile it ` +
      `sealed ${count(watched.seals)} times, minted ${count(rows)} rows of the drop, sent ${figureOf(heardMb)} MB of ` +
      `events, and began its verification no. ${watched.verifies}. Its event loop was busy for ` +
      `${count(watched.busy * 100)} % of the time, and requests of 1,000 took ${figureOf(bulkP50)} ms at p50 and ` +
      `${figureOf(bulkP99)} at p99. The server without the engine gets the same requests, and has nothing else to do. ` +
      "All processes share the machine's cores.",
    columns: QUANTILES,
    rows: [
      { label: "the server", ours: true, values: quantiles(ascending(singles)) },
      { label: "the same without the engine", ours: false, values: quantiles(bare) },
      { label: "the disk alone", ours: false, values: quantiles(disk) },
    ],
    reference: null,
  };
}

const figureOf = (value: number) => value.toFixed(value < 10 ? 1 : 0);

const STORE = "LevelDB's write until it was on disk";
const CORE = "the event loop waited for a core";
const REST = "the kernel and the client";
/** A busy sample after a longer time means that the loop's thread did not run in between. */
const SAMPLE_MS = 3;

/** The milliseconds of a request's wait that each cause explains. */
function explained({ due, ms }: Paced, { samples, writes }: Ended): Map<string, number> {
  const causes = new Map<string, number>();
  const add = (cause: string, value: number) => causes.set(cause, (causes.get(cause) ?? 0) + value);
  let left = ms;
  for (let i = firstAfter(samples, due); i < samples.length; i++) {
    const sample = samples[i]!;
    const start = Math.max(due, sample.at - sample.ms);
    if (start > due + ms) break;
    if (sample.stage === null) continue;
    const took = Math.min(due + ms, sample.at) - start;
    add(sample.stage, Math.min(took, SAMPLE_MS));
    add(CORE, Math.max(0, took - SAMPLE_MS));
    left -= took;
  }
  // A write goes on beside the event loop, so it explains no more than what is left.
  const written = writes.reduce((sum, write) => sum + Math.max(0, overlap(due, ms, write)), 0);
  add(STORE, Math.min(left, written));
  add(REST, Math.max(0, left - written));
  return causes;
}

/** The place of the first of ascending times that is later. */
function firstAfter(all: readonly { readonly at: number }[], time: number): number {
  let [low, high] = [0, all.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (all[middle]!.at <= time) low = middle + 1;
    else high = middle;
  }
  return low;
}

function overlap(due: number, ms: number, held: Held): number {
  return Math.min(due + ms, held.at + held.ms) - Math.max(due, held.at);
}

function slowestOf(singles: readonly Paced[]): readonly Paced[] {
  const bound = quantile(ascending(singles), 0.99);
  return singles.filter(({ ms }) => ms >= bound);
}

function causesOf({ singles, watched }: Loaded): SectionResult {
  const slowest = slowestOf(singles);
  const sums = new Map<string, number>();
  for (const request of slowest)
    for (const [cause, ms] of explained(request, watched))
      sums.set(cause, (sums.get(cause) ?? 0) + ms / slowest.length);
  const most = [...sums].sort(([, a], [, b]) => b - a).filter(([, ms]) => ms >= 0.05);
  return {
    name: "causes",
    title: TAIL_TITLES[1],
    method:
      "Means over the slowest hundredth of the single mints, from a profile of the event loop by the stages of " +
      "docs/bench-http.md. It is of another run of the same load, because the profile costs the loop itself.",
    columns: [{ key: "ms", label: "mean wait", unit: "ms", better: "lower" }],
    rows: most.map(([label, ms]): Row => ({ label, ours: false, values: { ms } })),
    reference: null,
  };
}

/** The longest waits of each second, and what ran then. */
function timelineOf({ singles, watched }: Loaded): SectionResult {
  const first = singles[0]?.due ?? 0;
  const secondOf = (at: number) => Math.floor((at - first) / 1_000);
  const seconds = Map.groupBy(singles, ({ due }) => secondOf(due));
  const longest = (all: readonly Held[], second: number) =>
    Math.max(0, ...all.filter(({ at }) => secondOf(at) === second).map(({ ms }) => ms));
  const rows = [...seconds].map(([second, requests]): Row => {
    const slowest = requests.reduce((one, other) => (other.ms > one.ms ? other : one));
    const [cause = ""] = [...explained(slowest, watched)].sort(([, a], [, b]) => b - a)[0] ?? [];
    const values = {
      ms: slowest.ms,
      loop: longest(watched.pieces, second),
      write: longest(watched.writes, second),
      gc: longest(watched.collections, second),
    };
    return { label: `second ${second + 1}: ${cause}`, ours: false, values };
  });
  return {
    name: "timeline",
    title: "The longest waits of each second",
    method: "Beside each second: what the slowest single mint of it waited for longest.",
    columns: [
      { key: "ms", label: "slowest single mint", unit: "ms", better: "lower" },
      { key: "loop", label: "longest piece on the event loop", unit: "ms", better: "lower" },
      { key: "write", label: "longest write", unit: "ms", better: "lower" },
      { key: "gc", label: "longest garbage collection", unit: "ms", better: "lower" },
    ],
    rows,
    reference: null,
  };
}

const SHOWN = 15;

function piecesOf(pieces: readonly Piece[]): SectionResult {
  const most = pieces.toSorted((a, b) => b.cpuMs - a.cpuMs).slice(0, SHOWN);
  return {
    name: "pieces",
    title: "The longest synchronous pieces",
    method:
      "One call into JavaScript with its microtasks, by CPU time without garbage, and the functions that took most of it.",
    columns: [
      { key: "cpuMs", label: "CPU", unit: "ms", better: "lower" },
      { key: "ms", label: "wall-clock", unit: "ms", better: "lower" },
    ],
    rows: most.map(({ where, cpuMs, ms }) => ({
      label: where,
      ours: false,
      values: { cpuMs, ms },
    })),
    reference: null,
  };
}
