import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import hre from "hardhat";
import type { TestProject } from "vitest/node";
import { installTools } from "../scripts/tools.ts";

const ROOT = fileURLToPath(new URL("..", import.meta.url));

/**
 * Vitest global setup: artifacts exist and are current before the first test starts. The Solidity tests are compiled by
 * the file that runs them, while other files run. PostgreSQL is installed here, since two test files at once would install
 * it into the same folder.
 */
export default async function compileContracts(project: TestProject): Promise<void> {
  // The many processes that tests start take half the time when they share compiled code.
  process.env.NODE_COMPILE_CACHE ??= fileURLToPath(new URL("../cache/compiled", import.meta.url));
  // The names given on the command line. Vitest does not declare the property; without it, everything is compiled.
  const { filenamePattern } = project.vitest as { readonly filenamePattern?: string[] };
  const { testFiles } = await project.globTestFiles(filenamePattern);
  if (testFiles.some((file) => file.includes("/cluster"))) installTools("cluster");
  // The client's types are not in the repository, and the tests of the package's documentation read them.
  if (!existsSync(`${ROOT}server/client/api.ts`))
    execFileSync(process.execPath, ["scripts/generate-client.ts"], { cwd: ROOT });
  await hre.tasks.getTask("build").run({ quiet: true, defaultBuildProfile: "default", noTests: true });
}
