import { defineConfig } from "vitest/config";

/** The tests in test/contracts on instrumented code; run by scripts/coverage.ts. */
export default defineConfig({
  test: {
    include: ["test/contracts/**/*.test.ts"],
    // Instrumented code is larger than what is deployed.
    exclude: ["test/contracts/code-size.test.ts"],
    globalSetup: "./scripts/coverage/run.ts",
    setupFiles: ["./scripts/coverage/file.ts"],
    reporters: [["default", { summary: false }]],
    pool: "forks",
    isolate: false,
    testTimeout: 600_000,
    hookTimeout: 600_000,
  },
});
