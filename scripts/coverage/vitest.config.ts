import { defineConfig } from "vitest/config";

/** The contracts' own tests on instrumented code; run by scripts/coverage.ts. */
export default defineConfig({
  test: {
    include: ["test/contracts/**/*.test.ts", "test/mirror/**/*.test.ts"],
    // Instrumented code is larger than deployed code, and takes more gas.
    exclude: ["test/contracts/code-size.test.ts", "test/contracts/*-gas.test.ts"],
    globalSetup: "./scripts/coverage/run.ts",
    setupFiles: ["./scripts/coverage/file.ts"],
    reporters: [["default", { summary: false }]],
    pool: "forks",
    isolate: false,
    testTimeout: 600_000,
    hookTimeout: 600_000,
  },
});
