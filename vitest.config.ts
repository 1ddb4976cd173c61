import { availableParallelism } from "node:os";
import { configDefaults, defineConfig } from "vitest/config";
import { BaseSequencer, type TestSpecification } from "vitest/node";
import { QUICK, REST } from "./test/split.ts";

/**
 * Files that start whole servers, browsers and chains come first: one of them at the end would have
 * the machine to itself.
 */
class LongFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files);
    const isLong = ({ moduleId }: TestSpecification): boolean =>
      /\/test\/(e2e|browser|package|examples)\b/.test(moduleId);
    return [...sorted.filter(isLong), ...sorted.filter((file) => !isLong(file))];
  }
}

/** How every test runs. */
export const EVERY = {
  // One process per core and no module reload between files: files share nothing they could spoil
  // for one another.
  pool: "forks",
  isolate: false,
  // Limits of a machine ten times slower than a developer's: a test that fails by time tells
  // nothing.
  expect: { poll: { timeout: 200_000 } },
  testTimeout: 900_000,
  hookTimeout: 900_000,
} as const;

/** How every run goes. */
export const RUN = {
  // Compiles the contracts once, before any test asks for an artifact.
  globalSetup: "./test/compile-contracts.ts",
  reporters: ["default", "./test/closing-line.ts"],
};

/** `npm test` runs the first project, `npm run test:all` both. */
export default defineConfig({
  test: {
    ...RUN,
    // One more than cores: many tests wait for processes, blocks and pages, and would leave a core
    // idle.
    maxWorkers: availableParallelism() + 1,
    sequence: { sequencer: LongFirst },
    projects: [QUICK, REST].map(({ exclude, ...split }) => ({
      test: { ...EVERY, ...split, exclude: [...configDefaults.exclude, ...exclude] },
    })),
  },
});
