import { defineConfig } from "vitest/config";

process.env.HARDHAT_COVERAGE = "true";
process.env.HARDHAT_CONFIG = "test/coverage/hardhat.config.ts";

/**
 * `npm run coverage`: the contracts' tests on code that Hardhat instruments. Hardhat prints which
 * lines they reach.
 */
export default defineConfig({
  test: {
    include: ["test/contracts/**/*.test.ts", "test/mirror/**/*.test.ts"],
    // Instrumented code is larger than deployed code, and takes more gas.
    exclude: ["test/contracts/code-size.test.ts", "test/contracts/*-gas.test.ts"],
    globalSetup: "./test/coverage/hits.ts",
    setupFiles: ["./test/coverage/hits.ts"],
    reporters: [["default", { summary: false }]],
    pool: "forks",
    isolate: false,
    testTimeout: 600_000,
    hookTimeout: 600_000,
  },
});
