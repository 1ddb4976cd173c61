import { type ChildProcess, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { chmod, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as pause } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { LevelJournal, restoreStore } from "../core/index.ts";
import { ClusterNode, PostgresJournal } from "../core/lifecycle/cluster/index.ts";
import { PostgresServer } from "../scripts/cluster/postgres.ts";
import { SETTLEMENT, Workload, type World } from "./engine-workload.ts";
import type { Row, Section } from "./section.ts";

/** Mints in the journal before the leader is killed. */
const SIZES = { usual: [1_000_000], full: [1_000_000, 10_000_000] } as const;
const ROW = fileURLToPath(new URL("./takeover-row.ts", import.meta.url));

/** Starts the leader, and resolves when it has minted. */
async function leader(args: readonly string[], progress: (line: string) => void) {
  const child: ChildProcess = spawn(process.execPath, [...process.execArgv, ROW, ...args], {
    stdio: ["ignore", "pipe", "pipe"],
  });
  let said = "";
  if (child.stdout === null || child.stderr === null) throw new Error("no pipes");
  createInterface({ input: child.stderr }).on("line", (line) => {
    said = `${said}\n${line}`.slice(-2_000);
    progress(line);
  });
  const answered = once(createInterface({ input: child.stdout }), "line") as Promise<[string]>;
  const ended = once(child, "exit").then(() => Promise.reject(new Error(`the leader ended: ${said}`)));
  ended.catch(() => {});
  const [line] = await Promise.race([answered, ended]);
  return { child, world: JSON.parse(line) as World };
}

const since = (start: number) => (performance.now() - start) / 1_000;

async function row(mints: number, progress: (line: string) => void): Promise<Row> {
  const folder = await mkdtemp(join(tmpdir(), "mintmark-bench-"));
  // PostgreSQL runs as another user when this runs as root.
  await chmod(folder, 0o755);
  await using stack = new AsyncDisposableStack();
  stack.defer(() => rm(folder, { recursive: true, force: true }));
  const primary = stack.use(await PostgresServer.primary(join(folder, "primary")));
  stack.use(await primary.standby(join(folder, "standby"), "one"));
  const key = randomBytes(32);
  const { child, world } = await leader(
    [join(folder, "killed"), primary.url, key.toString("hex"), `${mints}`],
    progress,
  );
  stack.defer(() => void child.kill("SIGKILL"));

  progress("a server with an empty folder reads the journal");
  const reading = performance.now();
  const node = stack.use(
    await ClusterNode.join({
      store: join(folder, "store"),
      journal: await PostgresJournal.open({ url: primary.url, shard: "takeover", keys: [key] }),
      server: { name: "next", url: "http://127.0.0.1:2" },
      settlement: SETTLEMENT,
      environment: "sandbox",
    }),
  );
  while (node.lag > 0) await pause(10);
  const read = since(reading);

  progress("killing the leader");
  const workload = new Workload(world, mints);
  const killed = performance.now();
  child.kill("SIGKILL");
  while (!node.isLeader) await pause(10);
  await node.engine.mint(world.principal, workload.single());
  const takeover = since(killed);

  progress("backup");
  await using journal = await LevelJournal.open(join(folder, "backup"));
  const copying = performance.now();
  await node.engine.operator.backup(journal);
  const backup = since(copying);
  progress("restore");
  const restoring = performance.now();
  await restoreStore(journal, join(folder, "restored"));
  const values = { takeover, read, backup, restore: since(restoring) };
  return { label: `${mints.toLocaleString("en-US")} mints before`, ours: true, values };
}

/** A leader's death, and what brings a store back. */
export const takeoverSection: Section = {
  name: "takeover",
  async run(progress, extent) {
    const rows: Row[] = [];
    for (const mints of SIZES[extent]) rows.push(await row(mints, (line) => progress(`takeover at ${mints}: ${line}`)));
    return {
      name: "takeover",
      title: "Takeover, backup and restore",
      method:
        "Two engines over PostgreSQL with a synchronous standby, all on this machine, with a lease of 3 s, the default. " +
        "The leader gets SIGKILL; the other takes over and mints. A server adds the start of its HTTP service to that. " +
        "A restore derives a store from a backup, or from the folder of a journal's copy, which has the same form. A " +
        "server with an empty folder reads the journal from PostgreSQL instead.",
      columns: [
        { key: "takeover", label: "SIGKILL to the next acknowledged mint", unit: "s", better: "lower" },
        { key: "backup", label: "first backup beside the running engine, compared", unit: "s", better: "lower" },
        { key: "restore", label: "restore from a backup", unit: "s", better: "lower" },
        { key: "read", label: "an empty folder filled from PostgreSQL", unit: "s", better: "lower" },
      ],
      rows,
      reference: null,
    };
  },
};
