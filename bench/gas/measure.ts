import hre from "hardhat";
import { blobSection, rollupSection, validiumSection } from "./commits.ts";
import { deploymentSection, plainSection } from "./deployments.ts";
import { makingSection } from "./makings.ts";
import { mirrorSection } from "./mirror.ts";
import type { Section } from "./report.ts";
import { transferSection } from "./transfers.ts";
import { openingSection, withdrawalSection } from "./withdrawals.ts";

/** Compiles the contracts and measures every section of docs/gas.md, in its order. */
export async function measureAll(): Promise<Section[]> {
  await hre.tasks
    .getTask("build")
    .run({ quiet: true, defaultBuildProfile: "default", noTests: true });
  const plain = await plainSection();
  return [
    await rollupSection(),
    await blobSection(),
    await validiumSection(),
    await withdrawalSection(plain.newOwner),
    await openingSection(),
    await transferSection(),
    await makingSection(),
    await mirrorSection(),
    plain.section,
    await deploymentSection(),
  ];
}
