import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdir, readFile, symlink } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { engineSection, filled } from "./engine.ts";
import { inFolder, median, type Progress } from "./harness.ts";
import { markdownTable } from "./report.ts";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const TURNS = 5;
/** Mints in each revision's store before the measurement. */
const BEFORE = 10_000;

/**
 * Figures of both revisions, one right after the other, by the keys of the engine section's
 * columns.
 */
export type Turn = Readonly<Record<"there" | "here", Readonly<Record<string, number>>>>;

/**
 * Measures this working copy and another revision in turns, each through its own
 * `engine-workload.ts`, so that a slow minute of the machine affects both.
 */
export async function measureAgainst(
  revision: string,
  progress: Progress,
): Promise<readonly Turn[]> {
  return inFolder(async (folder) => {
    progress(`checking out ${revision}`);
    const other = join(folder, "revision");
    await checkOut(revision, other);
    const workload = workloadIn(other);
    const turns: Turn[] = [];
    for (let turn = 1; turn <= TURNS; turn++) {
      const said = (name: string) => (line: string) =>
        progress(`turn ${turn} of ${TURNS}, ${name}: ${line}`);
      const mint = (name: string, its?: string) => filled("mint", BEFORE, said(name), its);
      // They take turns in going first, so neither always finds the disk as the other left it.
      const there = turn % 2 === 0 ? null : await mint(revision, workload);
      const here = await mint("this one");
      turns.push({ here, there: there ?? (await mint(revision, workload)) });
    }
    return turns;
  });
}

async function checkOut(revision: string, folder: string): Promise<void> {
  const archive = join(dirname(folder), "revision.tar");
  await mkdir(folder);
  run(ROOT, "git", "archive", "--output", archive, revision);
  run(folder, "tar", "-xf", archive);
  if (await hasSameModules(folder))
    await symlink(join(ROOT, "node_modules"), join(folder, "node_modules"));
  else run(folder, "npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund");
}

/** Whether all modules that a revision's engine runs with are installed here, in its versions. */
async function hasSameModules(folder: string): Promise<boolean> {
  const { dependencies } = JSON.parse(await readFile(join(folder, "package.json"), "utf8"));
  const same = Object.entries(dependencies).map(async ([name, version]) => {
    const installed = await readFile(
      join(ROOT, "node_modules", name, "package.json"),
      "utf8",
    ).catch(() => "{}");
    return JSON.parse(installed).version === version;
  });
  return (await Promise.all(same)).every(Boolean);
}

/**
 * `engine-workload.ts` has been at these places. It opens an engine, fills it with a world, and
 * makes requests.
 */
function workloadIn(folder: string): string {
  const places = ["bench", "scripts/bench"].map((place) =>
    join(folder, place, "engine-workload.ts"),
  );
  const found = places.find((path) => existsSync(path));
  if (found === undefined)
    throw new Error("the revision has no engine-workload.ts, so it cannot be measured");
  return found;
}

function run(cwd: string, program: string, ...words: readonly string[]): void {
  const { status, stderr, error } = spawnSync(program, words, { cwd, encoding: "utf8" });
  if (status !== 0)
    throw new Error(`${program} ${words.join(" ")} failed: ${error?.message ?? stderr.trim()}`);
}

/** The best of all turns, the ratio of both, and the least and greatest ratio of a turn. */
export function againstText(revision: string, turns: readonly Turn[]): string {
  const figures = engineSection.columns.filter(({ key }) => turns.every(({ here }) => key in here));
  const rows = figures.map(({ key, label, unit, better }) => {
    const best = better === "lower" ? Math.min : Math.max;
    const of = (side: keyof Turn) => turns.map((turn) => turn[side][key] ?? Number.NaN);
    const [there, here] = [best(...of("there")), best(...of("here"))];
    const ratios = of("here").map((figure, i) => figure / (of("there")[i] ?? Number.NaN));
    const [least, most] = [Math.min(...ratios), Math.max(...ratios)];
    const values = { there, here, ratio: here / there, least, median: median(ratios), most };
    return { label: `${label}, ${unit}`, ours: false, values };
  });
  const columns = [
    { key: "there", label: revision, unit: "best" },
    { key: "here", label: "this one", unit: "best" },
    { key: "ratio", label: "ratio", unit: "of these" },
    { key: "least", label: "of a turn", unit: "least" },
    { key: "median", label: "of a turn", unit: "median" },
    { key: "most", label: "of a turn", unit: "most" },
  ].map((column) => ({ ...column, better: "lower" as const }));
  return markdownTable({ name: "against", title: "", method: "", columns, rows, reference: null });
}
