import { execFileSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";

const MODELS = fileURLToPath(new URL("../model", import.meta.url));
const isInstalled = existsSync("/usr/bin/spin") && existsSync("/usr/bin/gcc");

/** Bounds under which a model without one rule shows its trace in seconds. */
const SMALLER: Readonly<Record<string, readonly string[]>> = { NO_FINALITY: ["-DCOMMITS=0"] };

/** Explores a model, breadth first so that its trace is the shortest. */
async function explore(model: string, definitions: readonly string[]): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "mintmark-model-"));
  const run = (command: string, ...args: string[]): string =>
    execFileSync(command, args, { cwd: folder, encoding: "utf8", stdio: ["ignore", "pipe", 2] });
  try {
    run("spin", ...definitions, "-a", join(MODELS, model));
    run("gcc", "-O2", "-w", "-DSAFETY", "-DCOLLAPSE", "-DBFS", "-o", "explore", "pan.c");
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
describe.skipIf(!isInstalled).each(["lineage.pml", "units.pml"])("the model %s", (model) => {
  it("holds in each state that it reaches", async () => {
    const found = await explore(model, []);
    expect(found).toMatch(/errors: 0/);
    expect(Number(/(\d+) states, stored/.exec(found)?.[1])).toBeGreaterThan(100_000);
  });

  it.each(rulesOf(model))("shows a fault with %s", async (rule) => {
    const found = await explore(model, [`-D${rule}`, ...(SMALLER[rule] ?? [])]);
    expect(found).toMatch(/assertion violated/);
    expect(found).toMatch(/errors: 1/);
  });
});
