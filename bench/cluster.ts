import { randomBytes } from "node:crypto";
import { chmod, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Engine } from "../core/index.ts";
import { ClusterNode, PostgresJournal } from "../core/lifecycle/cluster/index.ts";
import { PostgresServer } from "../scripts/cluster/postgres.ts";
import { CALLERS, open, REQUEST, SETTLEMENT, SINGLE_CALLERS, settle, Workload, type World } from "./engine-workload.ts";
import { median } from "./measure.ts";
import type { Row, Section } from "./section.ts";

const ROUNDS = 5;
/** Requests of a round: of 1,000 mints, and of one. */
const BULK = 60;
const SINGLES = 5_000;

/** What is measured, with the value of `synchronous_standby_names` that it needs; null without a journal. */
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
  readonly rounds: Record<"bulk" | "bulkMs" | "singles" | "singlesMs", number[]>;
}

/** Mints a second, and the median ms of a request. */
async function send({ engine, world }: Subject, requests: readonly unknown[], callers: number, mints: number) {
  let next = 0;
  const latencies: number[] = [];
  const caller = async () => {
    while (next < requests.length) {
      const start = performance.now();
      await engine.mint(world.principal, requests[next++]);
      latencies.push(performance.now() - start);
    }
  };
  const start = performance.now();
  await Promise.all(Array.from({ length: callers }, caller));
  return { rate: (requests.length * mints) / (performance.now() - start), ms: median(latencies) };
}

async function round(subject: Subject): Promise<void> {
  const { rounds, workload } = subject;
  const large = Array.from({ length: BULK }, () => workload.bulk());
  const bulk = await send(subject, large, CALLERS, REQUEST);
  const small = Array.from({ length: SINGLES }, () => workload.single());
  const singles = await send(subject, small, SINGLE_CALLERS, 1);
  rounds.bulk.push(bulk.rate);
  rounds.bulkMs.push(bulk.ms);
  rounds.singles.push(singles.rate);
  rounds.singlesMs.push(singles.ms);
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

async function measure(folder: string, progress: (line: string) => void): Promise<readonly Row[]> {
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
      const journal = await PostgresJournal.open({ url: primary.url, shard: `${i}`, keys, single: standbys === "" });
      const server = { name: "bench", url: "http://127.0.0.1:1" };
      // While another subject is measured, nobody takes the lead for a missed lease.
      const options = {
        settlement: SETTLEMENT,
        environment: "sandbox",
        createIfMissing: true,
        leaseMs: 60_000,
      } as const;
      const node = stack.use(await ClusterNode.join({ ...options, store, journal, server }));
      engine = node.engine;
    }
    const world = await settle(engine);
    const rounds = { bulk: [], bulkMs: [], singles: [], singlesMs: [] };
    subjects.push({ engine, world, workload: new Workload(world), rounds });
  }
  // The first round warms up.
  for (let i = 0; i <= ROUNDS; i++) {
    for (const [j, { label, standbys }] of SUBJECTS.entries()) {
      progress(`round ${i} of ${ROUNDS}: ${label}`);
      await waitFor(primary, standbys ?? "");
      await round(subjects[j] as Subject);
    }
  }
  await waitFor(primary, "");
  return SUBJECTS.map(({ label }, j) => {
    const rounds = Object.entries(subjects[j]?.rounds ?? {});
    const values = Object.fromEntries(rounds.map(([key, figures]) => [key, median(figures.slice(1))]));
    return { label, ours: true, values };
  });
}

/** The cost of a cluster's journal on PostgreSQL. */
export const clusterSection: Section = {
  name: "cluster",
  async run(progress) {
    const folder = await mkdtemp(join(tmpdir(), "mintmark-bench-"));
    // PostgreSQL runs as another user when this runs as root.
    await chmod(folder, 0o755);
    try {
      return {
        name: "cluster",
        title: "The journal of a cluster",
        method:
          "The engine of a cluster's leader, requests as in the section on mints; an answer waits for the standbys. " +
          "Engine, PostgreSQL's primary and both of its standbys share this machine's cores and disk, so the ratios " +
          "are worse than with machines of their own. A standby that is not synchronous follows all the same. The rows " +
          `take turns, ${ROUNDS} rounds each.`,
        columns: [
          { key: "bulk", label: "requests of 1,000", unit: "thousand mints/s", better: "higher" },
          { key: "bulkMs", label: `a request of 1,000, ${CALLERS} callers`, unit: "ms", better: "lower" },
          { key: "singles", label: "requests of 1", unit: "thousand mints/s", better: "higher" },
          { key: "singlesMs", label: `a request of 1, ${SINGLE_CALLERS} callers`, unit: "ms", better: "lower" },
        ],
        rows: await measure(folder, progress),
        reference: SUBJECTS[0].label,
      };
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  },
};
