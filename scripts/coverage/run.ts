import hre from "hardhat";

/** What Hardhat calls a runner's results by. */
export const RUNNER = "vitest";

/** Vitest global setup: forgets earlier hits and builds instrumented contracts; at the end, Hardhat reports. */
export default async function instrumentedRun(): Promise<() => Promise<void>> {
  await hre.hooks.runHandlerChain("test", "onTestRunStart", [RUNNER], async () => {});
  await hre.tasks.getTask("build").run({ quiet: true, defaultBuildProfile: "default" });
  return () => hre.hooks.runHandlerChain("test", "onTestRunDone", [RUNNER], async () => {});
}
