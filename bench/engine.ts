import { CALLERS, SINGLE_CALLERS, USERS_PER_REQUEST } from "./engine-workload.ts";
import { inFolder, type Progress, run, type Section } from "./harness.ts";
import type { Row } from "./report.ts";

/** Mints in a row's store before the measurement. */
const SIZES = [0, 10_000, 100_000, 1_000_000];
const FINDING_SIZE = 1_000_000;

/**
 * Fills a store with mints and measures it, in two processes.
 *
 * @param workload - path of the `engine-workload.ts` of another revision, to measure that one
 */
export function filled(
  action: "mint" | "find",
  mints: number,
  progress: Progress,
  workload?: string,
) {
  const given = [String(mints), ...(workload === undefined ? [] : [workload])];
  const how = {
    options: ["--expose-gc"],
    progress: (line: string) => progress(`engine at ${mints}: ${line}`),
  };
  return inFolder(async (folder) => {
    await run("./engine-row.ts", ["fill", folder, ...given], how);
    const figures = await run("./engine-row.ts", [action, folder, ...given], how);
    return JSON.parse(figures) as Readonly<Record<string, number>>;
  });
}

const before = (mints: number) => `${mints.toLocaleString("en-US")} mints before`;

export const engineSection: Section = {
  name: "engine",
  title: "Durable mints",
  method:
    "Through the public API over LevelDB, acknowledged when on disk; wall-clock. Requests of " +
    `1,000 mints for ${USERS_PER_REQUEST} users from ${CALLERS} callers: half ERC-721 with ` +
    "random ids, a quarter with consecutive ones, 15 % ERC-1155, 10 % ERC-20; every tenth for " +
    `the rollup; batches are sealed as they fill. Requests of 1: ERC-721, ${SINGLE_CALLERS} ` +
    "callers. Each column is a store with so many mints before. Memory is the measuring " +
    "process's resident set, its requests included.",
  columns: [
    { key: "bulk", label: "requests of 1,000", unit: "thousand mints/s", better: "higher" },
    { key: "bulkLoop", label: "of which the event loop's CPU", unit: "µs a mint", better: "lower" },
    { key: "bulkCpu", label: "all threads' CPU", unit: "µs a mint", better: "lower" },
    { key: "singles", label: "requests of 1", unit: "thousand mints/s", better: "higher" },
    {
      key: "singlesLoop",
      label: "of which the event loop's CPU",
      unit: "µs a mint",
      better: "lower",
    },
    { key: "singlesCpu", label: "all threads' CPU", unit: "µs a mint", better: "lower" },
    { key: "steady", label: "memory after the run", unit: "MB", better: "lower" },
    { key: "peak", label: "most memory", unit: "MB", better: "lower" },
  ],
  reference: null,
  async rows(progress) {
    const rows: Row[] = [];
    for (const mints of SIZES) {
      const values = await filled("mint", mints, progress);
      const tick = mints.toLocaleString("en-US", { notation: "compact" });
      rows.push({ label: before(mints), tick, ours: true, values });
    }
    return rows;
  },
};

export const findingSection: Section = {
  name: "finding",
  title: "Finding vaults, transactions and users",
  method:
    "A page of 50 by each filter, of the application that minted all: requests as for mints, of 1,000 users. Median of 20 pages, wall-clock, the store just opened; the first page of " +
    "each is not counted.",
  columns: [{ key: "page", label: before(FINDING_SIZE), unit: "ms", better: "lower" }],
  reference: null,
  async rows(progress) {
    const found = Object.entries(await filled("find", FINDING_SIZE, progress));
    return found.map(([label, page]) => ({ label, ours: true, values: { page } }));
  },
};
