import { readdirSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { createHardhatRuntimeEnvironment } from "hardhat/hre";
import config from "../../hardhat.config.ts";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));

/** One Solidity test: its contract, its function, and why it failed. */
export interface SolidityOutcome {
  readonly suite: string;
  readonly name: string;
  readonly passed: boolean;
  readonly reason: string;
}

/** The suites, one a file: `Signatures.t.sol` and so on. */
export const SUITES: readonly string[] = readdirSync(new URL(".", import.meta.url)).filter((name) =>
  name.endsWith(".t.sol"),
);

/**
 * Compiles test/solidity/*.t.sol, where that has not been done yet, and runs it with Hardhat's own runner.
 *
 * @param effort - `runs` of each fuzz and invariant test; `depth`: calls of one run of an invariant
 * @param suites - of {@link SUITES}
 */
export async function runSolidityTests(
  effort: { runs: number; depth: number },
  suites: readonly string[] = SUITES,
): Promise<SolidityOutcome[]> {
  const hre = await createHardhatRuntimeEnvironment(
    {
      ...config,
      test: {
        solidity: {
          fsPermissions: { readDirectory: ["./artifacts"] },
          fuzz: { runs: effort.runs },
          // A handler that reverts has met something that it did not expect.
          invariant: { runs: effort.runs, depth: effort.depth, failOnRevert: true },
        },
      },
    },
    {},
    ROOT,
  );
  // Tests deploy support contracts by their artifacts, which the test task does not write.
  await hre.tasks.getTask("build").run({ quiet: true, defaultBuildProfile: "default" });
  const result = (await hre.tasks.getTask(["test", "solidity"]).run({
    noCompile: true,
    testFiles: suites.map((name) => `${ROOT}test/solidity/${name}`),
  })) as {
    readonly value?: TaskOutcome;
    readonly error?: TaskOutcome;
  };
  const { suiteResults } = result.value ?? result.error ?? { suiteResults: [] };
  return suiteResults.flatMap(({ id, testResults }) =>
    testResults.map(({ name, status, reason }) => ({
      suite: id.name,
      name,
      passed: status === "Success",
      reason: reason ?? status,
    })),
  );
}

/** As far as this file reads it. */
interface TaskOutcome {
  readonly suiteResults: readonly {
    readonly id: { readonly name: string };
    readonly testResults: readonly { readonly name: string; readonly status: string; readonly reason?: string }[];
  }[];
}
