import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { CALLERS, type EngineFigures, SINGLE_CALLERS, USERS_PER_REQUEST } from "./engine-workload.ts";
import type { Row, Section } from "./section.ts";

/** Mints in a row's store before the measurement. */
const SIZES = {
  usual: [0, 10_000, 100_000, 1_000_000],
  full: [0, 10_000, 100_000, 1_000_000, 10_000_000],
} as const;
const ROW = fileURLToPath(new URL("./engine-row.ts", import.meta.url));

const COLUMNS = [
  { key: "bulk", label: "requests of 1,000", unit: "thousand mints/s", better: "higher" },
  { key: "bulkLoop", label: "of which the event loop's CPU", unit: "µs a mint", better: "lower" },
  { key: "bulkCpu", label: "all threads' CPU", unit: "µs a mint", better: "lower" },
  { key: "singles", label: "requests of 1", unit: "thousand mints/s", better: "higher" },
  { key: "singlesLoop", label: "of which the event loop's CPU", unit: "µs a mint", better: "lower" },
  { key: "singlesCpu", label: "all threads' CPU", unit: "µs a mint", better: "lower" },
  { key: "proof", label: "proof of an old vault", unit: "ms", better: "lower" },
  { key: "open", label: "opening", unit: "ms", better: "lower" },
  { key: "memory", label: "memory after opening", unit: "MB", better: "lower" },
  { key: "steady", label: "memory after the run", unit: "MB", better: "lower" },
  { key: "peak", label: "most memory", unit: "MB", better: "lower" },
  { key: "disk", label: "disk", unit: "bytes a vault", better: "lower" },
] as const satisfies readonly { readonly key: keyof EngineFigures; readonly [name: string]: string }[];

/**
 * Runs one step of a row in its own process; resolves with its output.
 *
 * @param workload - path of the `engine-workload.ts` of another revision, to measure that one
 */
export async function step(
  action: "fill" | "measure" | "mint" | "find",
  folder: string,
  mints: number,
  progress: (line: string) => void,
  workload?: string,
) {
  const words = [action, folder, String(mints), ...(workload === undefined ? [] : [workload])];
  const child = spawn(process.execPath, ["--expose-gc", ROW, ...words], { stdio: ["ignore", "pipe", "pipe"] });
  let last = "";
  createInterface({ input: child.stderr }).on("line", (line) => {
    last = line;
    progress(`engine at ${mints}: ${line}`);
  });
  const [output, [exitCode]] = await Promise.all([text(child.stdout), once(child, "exit")]);
  if (exitCode !== 0) throw new Error(`the engine's row of ${mints} mints failed: ${last}`);
  return output;
}

async function row(mints: number, progress: (line: string) => void): Promise<Row> {
  const folder = await mkdtemp(join(tmpdir(), "mintmark-bench-"));
  try {
    await step("fill", folder, mints, progress);
    const figures: EngineFigures = JSON.parse(await step("measure", folder, mints, progress));
    // An empty store has no old vault, and too few records to measure a vault's bytes.
    const values = mints === 0 ? { ...figures, proof: null } : figures;
    const tick = mints.toLocaleString("en-US", { notation: "compact" });
    return { label: `${mints.toLocaleString("en-US")} mints before`, tick, ours: true, values: { ...values } };
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** The engine on LevelDB through its public API, with growing stores. */
export const engineSection: Section = {
  name: "engine",
  async run(progress, extent) {
    const rows: Row[] = [];
    for (const mints of SIZES[extent]) rows.push(await row(mints, progress));
    return {
      name: "engine",
      title: "Durable mints",
      method:
        "Through the public API over LevelDB, every check made, acknowledged when on disk; wall-clock, the answer's " +
        `vault ids read. Requests of 1,000 mints for ${USERS_PER_REQUEST} users from ${CALLERS} callers: half ERC-721 ` +
        "with random ids, a quarter with consecutive ones, 15 % ERC-1155, 10 % ERC-20; every tenth for the rollup; " +
        `batches are sealed as they fill. Requests of 1: ERC-721, ${SINGLE_CALLERS} callers. Each column is a store ` +
        "with so many mints before. Each has two processes of its own: one fills the store, one measures. Memory is " +
        "the measuring process's resident set, the requests that it sends included.",
      columns: COLUMNS,
      rows,
      reference: null,
    };
  },
};
