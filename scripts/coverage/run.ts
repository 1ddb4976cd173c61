import hre from "hardhat";

/** Hardhat's key for the results of this runner. */
export const RUNNER = "vitest";

/** Vitest global setup: deletes earlier hits and builds instrumented contracts. At the end, Hardhat reports. */
export default async function instrumentedRun(): Promise<() => Promise<void>> {
  await hre.hooks.runHandlerChain("test", "onTestRunStart", [RUNNER], async () => {});
  await hre.tasks.getTask("build").run({ quiet: true, defaultBuildProfile: "default" });
  return () => hre.hooks.runHandlerChain("test", "onTestRunDone", [RUNNER], async () => {});
}
