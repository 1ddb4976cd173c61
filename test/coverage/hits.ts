import hre from "hardhat";

/** Hardhat's key for the results of this runner. */
const RUNNER = "vitest";

/**
 * The global setup calls this. It deletes earlier hits and builds instrumented contracts. At the
 * end, Hardhat reports.
 */
export default async function instrumentedRun(): Promise<() => Promise<void>> {
  await hre.hooks.runHandlerChain("test", "onTestRunStart", [RUNNER], async () => {});
  await hre.tasks.getTask("build").run({ quiet: true, defaultBuildProfile: "default" });
  return () => hre.hooks.runHandlerChain("test", "onTestRunDone", [RUNNER], async () => {});
}

// The setup file makes each worker record its hits at the end of each of its files.
if (process.env.VITEST_WORKER_ID !== undefined) {
  const { afterAll } = await import("vitest");
  afterAll(() => hre.hooks.runHandlerChain("test", "onTestWorkerDone", [RUNNER], async () => {}));
}
