import { execFileSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";

const MODELS = fileURLToPath(new URL("../model", import.meta.url));
/** A model that needs more memory gives up, and its test fails. */
const MOST_MB = 6_000;
const isInstalled = existsSync("/usr/bin/spin") && existsSync("/usr/bin/gcc");

/**
 * Bounds of vaults and of commits under which all states of a model are reached in a minute and in
 * 3 GB. With both bounds at their defaults, 23 GB are too few.
 */
const WHOLE: Readonly<Record<string, readonly (readonly string[])[]>> = {
  "lineage.pml": [
    ["-DVAULTS=5", "-DCOMMITS=1"],
    ["-DVAULTS=4", "-DCOMMITS=2"],
  ],
  "units.pml": [
    ["-DVAULTS=6", "-DCOMMITS=2"],
    ["-DVAULTS=4", "-DCOMMITS=3"],
  ],
};

/** Bounds under which a model without one rule shows its trace in seconds. */
const SMALLER: Readonly<Record<string, readonly string[]>> = { NO_FINALITY: ["-DCOMMITS=0"] };

/** Explores a model, breadth first so that its trace is the shortest. */
async function explore(model: string, definitions: readonly string[]): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "mintmark-model-"));
  const run = (command: string, ...args: string[]): string =>
    execFileSync(command, args, { cwd: folder, encoding: "utf8", stdio: ["ignore", "pipe", 2] });
  try {
    run("spin", ...definitions, "-a", join(MODELS, model));
    const ways = ["-DSAFETY", "-DCOLLAPSE", "-DBFS", `-DMEMLIM=${MOST_MB}`];
    run("gcc", "-O2", "-w", ...ways, "-o", "explore", "pan.c");
    // An owner who does nothing any more is no fault, so ends of all kinds are allowed.
    return run(join(folder, "explore"), "-E");
  } finally {
    await rm(folder, { recursive: true });
  }
}

/** The rules that a model can leave out, as it names them. */
function rulesOf(model: string): readonly string[] {
  const text = readFileSync(join(MODELS, model), "utf8");
  return [...new Set([...text.matchAll(/^#ifn?def (NO_\w+)/gm)].map(([, rule = ""]) => rule))];
}

// Spin and gcc are Debian packages of these names.
describe.skipIf(!isInstalled).each(Object.keys(WHOLE))("the model %s", (model) => {
  it.each(WHOLE[model] ?? [])(
    "holds in each state that it reaches with %s %s",
    async (...bounds) => {
      const found = await explore(model, bounds);
      expect(found).toMatch(/errors: 0/);
      expect(Number(/(\d+) states, stored/.exec(found)?.[1])).toBeGreaterThan(100_000);
    },
  );

  it.each(rulesOf(model))("shows a fault with %s", async (rule) => {
    const found = await explore(model, [`-D${rule}`, ...(SMALLER[rule] ?? [])]);
    expect(found).toMatch(/assertion violated/);
    expect(found).toMatch(/errors: 1/);
  });
});
