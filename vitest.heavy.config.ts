import { defineConfig } from "vitest/config";
import { EVERY, RUN } from "./vitest.config.ts";

/** What takes longer than a developer waits: long fuzzing, kill loops, fault injection. `npm run test:heavy`. */
export default defineConfig({
  test: {
    ...RUN,
    ...EVERY,
    maxWorkers: 1,
    include: ["test/heavy/**/*.test.ts"],
    testTimeout: 36_000_000,
  },
});
