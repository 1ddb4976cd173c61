import { defineConfig, mergeConfig } from "vitest/config";
import base from "./vitest.config.ts";

/** What takes longer than a developer waits: long fuzzing, kill loops, fault injection. `npm run test:heavy`. */
export default mergeConfig(
  { ...base, test: { ...base.test, exclude: ["**/node_modules/**"] } },
  defineConfig({
    test: { maxWorkers: 1, include: ["test/heavy/**/*.test.ts"], testTimeout: 3_600_000, hookTimeout: 600_000 },
  }),
);
