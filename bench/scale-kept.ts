import { execFileSync } from "node:child_process";
import { mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { machine } from "./report.ts";

/** Figures depend on these: those of another origin say nothing about this one. */
export interface Origin {
  readonly commit: string;
  readonly node: string;
  readonly cpu: string;
}

export type Figures = Record<string, number>;

interface Kept {
  readonly origin: Origin;
  readonly steps: Record<string, Figures>;
}

/** Everything that `bench:scale` leaves in the folder of a size. */
const LEFT = ["store", "backup", "restored", "world.json", "figures.json"];

export function originHere({ node, cpu }: ReturnType<typeof machine> = machine()): Origin {
  const cwd = fileURLToPath(new URL("..", import.meta.url));
  const commit = execFileSync("git", ["rev-parse", "HEAD"], { cwd, encoding: "utf8" }).trim();
  return { commit, node, cpu };
}

const fileIn = (folder: string) => join(folder, "figures.json");

/**
 * The figures that an interrupted run of this origin has kept. Removes what a run of another origin
 * has left, its store too, and says so.
 */
export async function resume(
  folder: string,
  origin: Origin,
  say: (line: string) => void,
): Promise<Record<string, Figures>> {
  await mkdir(folder, { recursive: true });
  const text = await readFile(fileIn(folder), "utf8").catch(() => null);
  const kept = text === null ? null : (JSON.parse(text) as Partial<Kept>);
  const isSame = (Object.keys(origin) as (keyof Origin)[]).every(
    (name) => kept?.origin?.[name] === origin[name],
  );
  if (isSame && kept?.steps !== undefined) return kept.steps;
  if (kept !== null)
    say(`the figures in ${folder} are of another commit, Node or processor; measuring anew`);
  await forget(folder);
  // The store belongs to this origin from its first mint on.
  await keep(folder, origin, {});
  return {};
}

export async function keep(
  folder: string,
  origin: Origin,
  steps: Record<string, Figures>,
): Promise<void> {
  await writeFile(fileIn(folder), JSON.stringify({ origin, steps } satisfies Kept, null, 2));
}

/** Removes everything of a run, so that the next one measures. */
export async function forget(folder: string): Promise<void> {
  for (const name of LEFT) await rm(join(folder, name), { recursive: true, force: true });
}
