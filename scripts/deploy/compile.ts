import { existsSync } from "node:fs";

/** Compiles changed contracts. Only a clone has a compiler; the package has the artifacts. */
export async function compileInClone(): Promise<void> {
  if (!existsSync(new URL("../../hardhat.config.ts", import.meta.url))) return;
  const { compileContracts } = await import("../sandbox/chain.ts");
  await compileContracts();
}
