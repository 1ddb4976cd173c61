import { blobSection } from "./blobs.ts";
import { deploymentSection } from "./deployments.ts";
import type { Section } from "./measurement.ts";
import { mirrorSection } from "./mirror.ts";
import { plainSection } from "./plain.ts";
import { rollupSection } from "./rollup.ts";
import { transferSection } from "./transfers.ts";
import { validiumSection } from "./validium.ts";
import { openingSection, withdrawalSection } from "./withdrawals.ts";

/** All sections, in the order of docs/gas.md. The contracts must be compiled. */
export async function measureGas(): Promise<Section[]> {
  const plain = await plainSection();
  return [
    await rollupSection(),
    await blobSection(),
    await validiumSection(),
    await withdrawalSection(plain),
    await openingSection(),
    await transferSection(),
    await mirrorSection(),
    plain.section,
    await deploymentSection(),
  ];
}
