import { defineConfig } from "vitest/config";
import { HEAVY } from "./test/split.ts";
import { EVERY, RUN } from "./vitest.config.ts";

/**
 * How `npm run test:heavy` runs: one file at a time, and without a limit that long fuzzing would
 * reach.
 */
export default defineConfig({
  test: { ...RUN, ...EVERY, maxWorkers: 1, include: HEAVY, testTimeout: 36_000_000 },
});
