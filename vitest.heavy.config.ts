import { defineConfig } from "vitest/config";
import { HEAVY } from "./test/split.ts";
import { EVERY, RUN } from "./vitest.config.ts";

/** What takes longer than a developer waits: long fuzzing, kill loops, faults, the longest pages and processes. `npm run test:heavy`. */
export default defineConfig({
  test: {
    ...RUN,
    ...EVERY,
    maxWorkers: 1,
    include: HEAVY,
    testTimeout: 36_000_000,
  },
});
