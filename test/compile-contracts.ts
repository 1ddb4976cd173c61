import hre from "hardhat";

/** Vitest global setup: artifacts exist and are current before the first test starts. */
export default async function compileContracts(): Promise<void> {
  await hre.tasks.getTask("build").run({ quiet: true, defaultBuildProfile: "default" });
}
