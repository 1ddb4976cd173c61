import { execFileSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import type { TestProject } from "vitest/node";
import { installTools } from "../scripts/build/tools.ts";

const ROOT = fileURLToPath(new URL("..", import.meta.url));

/**
 * Vitest global setup: artifacts exist and are current before the first test starts that deploys
 * contracts of the tests. The Solidity tests are compiled by the file that runs them, while other
 * files run. PostgreSQL is installed here, since two test files at once would install it into the
 * same folder.
 */
export default async function compileContracts({ vitest }: TestProject): Promise<void> {
  // The many processes that tests start take half the time when they share compiled code.
  process.env.NODE_COMPILE_CACHE ??= fileURLToPath(new URL("../cache/compiled", import.meta.url));
  // The names given on the command line. Vitest does not declare the property; without it, every
  // file runs.
  const { filenamePattern } = vitest as { readonly filenamePattern?: string[] };
  const found = await Promise.all(
    vitest.projects.map((each) => each.globTestFiles(filenamePattern)),
  );
  const files = found.flatMap(({ testFiles }) => testFiles);
  if (files.some((file) => file.includes("/cluster"))) installTools("cluster");
  // The client's types are not in the repository, and the tests of the package's documentation read
  // them.
  if (!existsSync(`${ROOT}server/client/api.ts`))
    execFileSync(process.execPath, ["scripts/build/generate-client.ts"], { cwd: ROOT });
  if (!reachesHardhat(files)) return;
  const { default: hre } = await import("hardhat");
  await hre.tasks
    .getTask("build")
    .run({ quiet: true, defaultBuildProfile: "default", noTests: true });
}

/**
 * Whether one of the files, or a test's file that it imports, imports Hardhat. The others deploy
 * only what is tracked compiled: programs of `scripts/` start chains by Hardhat, and compile
 * nothing.
 */
function reachesHardhat(files: readonly string[]): boolean {
  const seen = new Set(files);
  for (const file of seen) {
    // A program that a test writes out imports from another folder.
    if (!existsSync(file)) continue;
    for (const [, target = ""] of readFileSync(file, "utf8").matchAll(
      /(?:from |import\()"([^"]+)"/g,
    )) {
      if (target === "hardhat" && file.startsWith(`${ROOT}test/`)) return true;
      if (target.startsWith(".") && /\.tsx?$/.test(target))
        seen.add(resolve(dirname(file), target));
    }
  }
  return false;
}
