import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as pause } from "node:timers/promises";
import { ClusterNode, type ClusterOptions, PostgresJournal } from "../core/cluster/index.ts";
import type { Engine } from "../core/index.ts";
import { PostgresServer } from "../scripts/cluster/postgres.ts";
import {
  CALLERS,
  open,
  REQUEST,
  SETTLEMENT,
  SINGLE_CALLERS,
  settle,
  Workload,
  type World,
} from "./engine-workload.ts";
import {
  costOf,
  fromCallers,
  inFolder,
  median,
  medians,
  type Progress,
  type Section,
  start,
} from "./harness.ts";
import type { Row } from "./report.ts";

type Joining = Pick<ClusterOptions, "createIfMissing" | "leaseMs">;

/** A node of a cluster that no other server reaches. */
export function joined(
  store: string,
  journal: PostgresJournal,
  options: Joining,
): Promise<ClusterNode> {
  const server = { name: "bench", url: "http://127.0.0.1:1" };
  return ClusterNode.join({
    ...options,
    settlement: SETTLEMENT,
    environment: "sandbox",
    store,
    journal,
    server,
  });
}

const ROUNDS = 5;
const KINDS = {
  bulk: {
    count: 60,
    callers: CALLERS,
    mints: REQUEST,
    next: (workload: Workload) => workload.bulk(),
  },
  singles: {
    count: 5_000,
    callers: SINGLE_CALLERS,
    mints: 1,
    next: (workload: Workload) => workload.single(),
  },
} as const;

/** Each subject needs a value of `synchronous_standby_names`; null without a journal. */
const SUBJECTS = [
  { label: "no journal: one server with its own disk", standbys: null },
  { label: "journal, no synchronous standby", standbys: "" },
  { label: "journal, one synchronous standby", standbys: "FIRST 1 (one)" },
  { label: "journal, two synchronous standbys", standbys: "FIRST 2 (one, two)" },
] as const;

interface Subject {
  readonly engine: Engine;
  readonly world: World;
  readonly workload: Workload;
  readonly rounds: Record<string, number>[];
}

/** Measures thousand mints a second, and the median ms of a request, for each kind. */
async function round({ engine, world, workload }: Subject): Promise<Record<string, number>> {
  const figures: Record<string, number> = {};
  for (const [kind, { count, callers, mints, next }] of Object.entries(KINDS)) {
    const requests = Array.from({ length: count }, () => next(workload));
    const latencies: number[] = [];
    const mint = async (request: unknown) => {
      const start = performance.now();
      await engine.mint(world.principal, request);
      latencies.push(performance.now() - start);
    };
    const { ms } = await costOf(() => fromCallers(callers, requests, mint));
    figures[kind] = (count * mints) / ms;
    figures[`${kind}Ms`] = median(latencies);
  }
  return figures;
}

/** Has the primary wait for these standbys from the next commit on. */
async function waitFor(primary: PostgresServer, standbys: string): Promise<void> {
  await primary.query(`alter system set synchronous_standby_names = '${standbys}'`);
  await primary.query("select pg_reload_conf()");
  for (;;) {
    const [row] = await primary.query("show synchronous_standby_names");
    if (row?.synchronous_standby_names === standbys) return;
  }
}

async function measure(folder: string, progress: Progress): Promise<readonly Row[]> {
  await using stack = new AsyncDisposableStack();
  progress("starting PostgreSQL with two standbys");
  const primary = stack.use(await PostgresServer.primary(join(folder, "primary")));
  for (const name of ["one", "two"]) stack.use(await primary.standby(join(folder, name), name));
  const subjects: Subject[] = [];
  for (const [i, { standbys }] of SUBJECTS.entries()) {
    const store = join(folder, `store-${i}`);
    let engine: Engine;
    if (standbys === null) engine = stack.use(await open(store));
    else {
      await waitFor(primary, standbys);
      const keys = [randomBytes(32)];
      const journal = await PostgresJournal.open({
        url: primary.url,
        shard: `${i}`,
        keys,
        single: standbys === "",
      });
      // While another subject is measured, nobody takes the lead for a missed lease.
      engine = stack.use(
        await joined(store, journal, { createIfMissing: true, leaseMs: 60_000 }),
      ).engine;
    }
    const world = await settle(engine);
    subjects.push({ engine, world, workload: new Workload(world), rounds: [] });
  }
  // The first round warms up.
  for (let i = 0; i <= ROUNDS; i++) {
    for (const [j, { label, standbys }] of SUBJECTS.entries()) {
      progress(`round ${i} of ${ROUNDS}: ${label}`);
      await waitFor(primary, standbys ?? "");
      const subject = subjects[j] as Subject;
      subject.rounds.push(await round(subject));
    }
  }
  await waitFor(primary, "");
  return SUBJECTS.map(({ label }, j) => ({
    label,
    ours: true,
    values: medians(subjects[j]?.rounds.slice(1) ?? []),
  }));
}

export const clusterSection: Section = {
  name: "cluster",
  title: "The journal of a cluster",
  method:
    "The engine of a cluster's leader, requests as for mints; an answer waits for the synchronous " +
    "standbys. Engine, PostgreSQL's primary and both of its standbys share this machine, so " +
    `the ratios are worse than with machines of their own. The rows take turns, ${ROUNDS} ` +
    "rounds each.",
  columns: [
    { key: "bulk", label: "requests of 1,000", unit: "thousand mints/s", better: "higher" },
    { key: "bulkMs", label: `a request of 1,000, ${CALLERS} callers`, unit: "ms", better: "lower" },
    { key: "singles", label: "requests of 1", unit: "thousand mints/s", better: "higher" },
    {
      key: "singlesMs",
      label: `a request of 1, ${SINGLE_CALLERS} callers`,
      unit: "ms",
      better: "lower",
    },
  ],
  reference: SUBJECTS[0].label,
  rows: (progress) => inFolder((folder) => measure(folder, progress)),
};

/** Mints in the journal before the leader is killed. */
const TAKEOVER_SIZE = 1_000_000;

async function leader(args: readonly string[], progress: Progress) {
  const started = start("./takeover-row.ts", args, { options: process.execArgv, progress });
  const { child, stdout } = started;
  const answered = once(createInterface({ input: stdout }), "line") as Promise<[string]>;
  const ended = once(child, "exit").then(() =>
    Promise.reject(new Error(`the leader ended: ${started.said}`)),
  );
  ended.catch(() => {});
  const [line] = await Promise.race([answered, ended]);
  return { child, world: JSON.parse(line) as World };
}

const since = (start: number) => (performance.now() - start) / 1_000;

async function takeoverRow(folder: string, mints: number, progress: Progress): Promise<Row> {
  await using stack = new AsyncDisposableStack();
  const primary = stack.use(await PostgresServer.primary(join(folder, "primary")));
  stack.use(await primary.standby(join(folder, "standby"), "one"));
  const key = randomBytes(32);
  const args = [join(folder, "killed"), primary.url, key.toString("hex"), `${mints}`];
  const { child, world } = await leader(args, progress);
  stack.defer(() => void child.kill("SIGKILL"));

  progress("a server with an empty folder reads the journal");
  const reading = performance.now();
  const shared = await PostgresJournal.open({ url: primary.url, shard: "takeover", keys: [key] });
  const node = stack.use(await joined(join(folder, "store"), shared, {}));
  while (node.lag > 0) await pause(10);
  const read = since(reading);

  progress("killing the leader");
  const workload = new Workload(world, mints);
  const killed = performance.now();
  child.kill("SIGKILL");
  while (!node.isLeader) await pause(10);
  await node.engine.mint(world.principal, workload.single());
  const values = { takeover: since(killed), read };
  return { label: `${mints.toLocaleString("en-US")} mints before`, ours: true, values };
}

export const takeoverSection: Section = {
  name: "takeover",
  title: "Takeover",
  method:
    "Two engines over PostgreSQL with a synchronous standby, all on this machine, with the " +
    "default lease of 3 s. The leader gets SIGKILL; the other takes over and mints. A server " +
    "adds the start of its HTTP service to that.",
  columns: [
    { key: "takeover", label: "SIGKILL to the next acknowledged mint", unit: "s", better: "lower" },
    { key: "read", label: "an empty folder filled from PostgreSQL", unit: "s", better: "lower" },
  ],
  reference: null,
  rows: async (progress) => [
    await inFolder((folder) =>
      takeoverRow(folder, TAKEOVER_SIZE, (line) =>
        progress(`takeover at ${TAKEOVER_SIZE}: ${line}`),
      ),
    ),
  ],
};
