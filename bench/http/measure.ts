import { join } from "node:path";
import { open, REQUEST, settle, type World } from "../engine-workload.ts";
import { inFolder, type Progress, run } from "../harness.ts";
import type { Row, SectionResult } from "../report.ts";
import { appendPaced, quantile } from "./connection.ts";
import { startServer } from "./server.ts";
import { STAGE_NAMES, stageShares } from "./stages.ts";

export interface Kind {
  readonly name: "bulk" | "singles";
  readonly mintsPerRequest: number;
  /** Connections at saturation, each with one request at a time. */
  readonly connections: number;
  readonly warmUp: number;
  /** Requests of one round at saturation, and number of rounds. */
  readonly round: number;
  readonly rounds: number;
  /** Seconds at half of the saturated rate. */
  readonly halfSeconds: number;
  /**
   * Bytes that the store writes for a request before its answer, without sealing and compaction.
   */
  readonly writtenBytes: number;
}

const FULL = { rounds: 3, halfSeconds: 10 } as const;
export const KINDS: readonly Kind[] = [
  {
    ...FULL,
    name: "bulk",
    mintsPerRequest: REQUEST,
    connections: 16,
    warmUp: 200,
    round: 300,
    writtenBytes: 31_000,
  },
  {
    ...FULL,
    name: "singles",
    mintsPerRequest: 1,
    connections: 256,
    warmUp: 10_000,
    round: 20_000,
    writtenBytes: 300,
  },
];

/** A tenth of the requests of each kind, for trials. */
export const QUICK: readonly Kind[] = KINDS.map((kind) => {
  return { ...kind, warmUp: kind.warmUp / 10, round: kind.round / 10, rounds: 1, halfSeconds: 2 };
});

/**
 * The input of the process that loads a server. Its output is the figures, by the keys of the
 * table's columns.
 */
export interface LoadPlan {
  readonly port: number;
  readonly serverPid: number;
  readonly world: World;
  readonly kinds: readonly Kind[];
}

const COLUMNS = KINDS.flatMap(({ name, mintsPerRequest }) => {
  const of =
    mintsPerRequest === 1
      ? "single mints"
      : `requests of ${mintsPerRequest.toLocaleString("en-US")}`;
  return [
    { key: `${name}Rate`, label: of, unit: "mints/s", better: "higher" },
    { key: `${name}Cpu`, label: `${of}: server's CPU`, unit: "µs a mint", better: "lower" },
    { key: `${name}P50`, label: `${of}: p50 at half load`, unit: "ms", better: "lower" },
    { key: `${name}P99`, label: `${of}: p99 at half load`, unit: "ms", better: "lower" },
  ] as const;
});

/** The aims as shares of what the server has without its engine, in the same run. */
const SHARES = { bulkRate: 0.65, singlesRate: 0.95, singlesCpu: 1.15 };
/** The aim for the slowest answers: so many times those of the bare server or of the disk. */
const MOST_TIMES = 3;

/**
 * Throughput and response times of the server, with and without its engine, each on its own store.
 */
export async function measureHttp(
  kinds: readonly Kind[],
  progress: Progress,
): Promise<SectionResult> {
  const server = await row("the server", "engine", kinds, progress);
  const disk = await diskRow(server, kinds, progress);
  const bare = await row("the same without the engine", "bare", kinds, progress);
  const rows = [server, bare, disk, { label: "aim", ours: false, values: aims(bare, disk) }];
  return {
    name: "http",
    title: "Mints over HTTP",
    method: METHOD,
    columns: COLUMNS,
    rows,
    reference: null,
  };
}

/** The aims for the server, by the keys of the table's columns. */
function aims(bare: Row, disk: Row): Record<string, number> {
  const shares = Object.entries(SHARES).map(
    ([key, share]) => [key, share * (bare.values[key] ?? Number.NaN)] as const,
  );
  const slowest = ["bulkP99", "singlesP99"].map((key) => {
    const most = Math.max(bare.values[key] ?? 0, disk.values[key] ?? 0);
    return [key, MOST_TIMES * most] as const;
  });
  return Object.fromEntries([...shares, ...slowest]);
}

/** Answer times of the disk for the writes of the server at half load. */
async function diskRow(server: Row, kinds: readonly Kind[], progress: Progress): Promise<Row> {
  const values: Record<string, number> = {};
  for (const { name, mintsPerRequest, halfSeconds, writtenBytes } of kinds) {
    progress(`the disk alone, ${name}`);
    const rate = (server.values[`${name}Rate`] ?? 0) / mintsPerRequest / 2;
    const times = await inFolder((folder) => appendPaced(folder, rate, halfSeconds, writtenBytes));
    values[`${name}P50`] = quantile(times, 0.5);
    values[`${name}P99`] = quantile(times, 0.99);
  }
  return { label: "the disk alone", ours: false, values };
}

async function row(
  label: string,
  which: "engine" | "bare",
  kinds: readonly Kind[],
  progress: Progress,
): Promise<Row> {
  const values = await underLoad(which, kinds, (line) => progress(`${label}, ${line}`));
  return { label, ours: which === "engine", values };
}

/** The server's time by stage. Profiling makes its rates unusable. */
export async function measureStages(
  kinds: readonly Kind[],
  progress: Progress,
): Promise<SectionResult> {
  const shares = new Map<string, Readonly<Record<string, number>>>();
  for (const kind of kinds) {
    await inFolder(async (folder) => {
      const options = ["--cpu-prof", `--cpu-prof-dir=${folder}`];
      await underLoad("engine", [kind], (line) => progress(`profiled, ${line}`), options);
      shares.set(`${kind.name}Rate`, await stageShares(folder));
    });
  }
  const columns = COLUMNS.filter(({ key }) => shares.has(key)).map((column) => ({
    ...column,
    unit: "%",
  }));
  const seen = STAGE_NAMES.filter((stage) => [...shares.values()].some((all) => all[stage]));
  const rows = seen.map((stage): Row => {
    const values = [...shares].map(([key, ofStages]) => [key, ofStages[stage] ?? null] as const);
    return { label: stage, ours: false, values: Object.fromEntries(values) };
  });
  return {
    name: "stages",
    title: "Where the time goes",
    method: STAGES_METHOD,
    columns,
    rows,
    reference: null,
  };
}

/** Starts a server on its own store, and loads it from another process. */
async function underLoad(
  which: "engine" | "bare",
  kinds: readonly Kind[],
  progress: Progress,
  options?: string[],
) {
  return inFolder(async (folder) => {
    const store = join(folder, "store");
    const engine = await open(store);
    const world = await settle(engine);
    await engine.close();
    await using server = await startServer(which, store, world, options);
    const input: LoadPlan = { kinds, port: server.port, serverPid: server.pid, world };
    return JSON.parse(
      await run("./http/load-process.ts", [], { input, progress }),
    ) as Row["values"];
  });
}

const CONNECTIONS = KINDS.map(
  ({ connections, mintsPerRequest }) =>
    `${connections} connections for requests of ${mintsPerRequest.toLocaleString("en-US")}`,
);

const METHOD =
  "The server as `npm run server` starts it, over a fresh LevelDB store; it answers a mint when the mint is on disk. " +
  "The load is a second process on the same cores: " +
  `${CONNECTIONS.join(", ")}. ` +
  "Requests of 1,000: half ERC-721 with random ids, a quarter with consecutive ones, 15 % ERC-1155, 10 % ERC-20, for " +
  "10 users, every tenth for the rollup; batches are sealed as they fill. Single mints: ERC-721. Rates are medians of " +
  "three rounds at saturation. Answer times are at half of the server's own rate, counted from the moment when a " +
  "request was due. Without the engine, HTTP, JSON and the log are left. The disk alone: a file beside the store takes " +
  "the bytes of the server's writes at the same times, so no server that waits for its disk can be quicker. " +
  "The aims come from the same run: 0.65 (single mints: 0.95) of the rate without the engine, at most 1.15 of its CPU " +
  "for a single mint, and a p99 of at most three times its own or the disk's, whichever is more.";

const STAGES_METHOD =
  "A CPU profile of the server's main thread over a tenth of the requests, warm-up included. Each sample counts for " +
  "the innermost function of a stage that was running.";
