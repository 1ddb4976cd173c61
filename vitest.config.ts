import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    include: ["test/**/*.test.ts"],
    exclude: ["test/heavy/**", "**/node_modules/**"],
    // Compiles the contracts once, before any test asks for an artifact.
    globalSetup: "./test/compile-contracts.ts",
    pool: "forks",
    isolate: false,
    testTimeout: 60_000,
    hookTimeout: 120_000,
  },
});
