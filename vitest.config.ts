import { availableParallelism } from "node:os";
import { defineConfig } from "vitest/config";
import { BaseSequencer, type TestSpecification } from "vitest/node";

/** Files that start whole servers, browsers and chains come first: one of them at the end would have the machine to itself. */
class LongFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files);
    const isLong = ({ moduleId }: TestSpecification): boolean =>
      /\/test\/(solidity|e2e|browser|package|examples)\b/.test(moduleId);
    return [...sorted.filter(isLong), ...sorted.filter((file) => !isLong(file))];
  }
}

export default defineConfig({
  test: {
    include: ["test/**/*.test.ts"],
    exclude: ["test/heavy/**", "**/node_modules/**"],
    // Compiles the contracts once, before any test asks for an artifact.
    globalSetup: "./test/compile-contracts.ts",
    reporters: ["default", "./test/closing-line.ts"],
    // One process per core and no module reload between files: files share nothing they could spoil for one another.
    pool: "forks",
    isolate: false,
    // One more than cores: many tests wait for processes, blocks and pages, and would leave a core idle.
    maxWorkers: availableParallelism() + 1,
    sequence: { sequencer: LongFirst },
    // A busy machine is slow; a test that fails by time tells nothing.
    expect: { poll: { timeout: 20_000 } },
    testTimeout: 90_000,
    hookTimeout: 180_000,
  },
});
