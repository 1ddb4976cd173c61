import { mkdir } from "node:fs/promises";
import { Level } from "level";
import type { L1Options } from "../../core/l1/index.ts";
import { UsageError } from "./exit-codes.ts";

/** The chain's own finality, or a number of confirmations for chains without a finality gadget. */
export function finalityOf(confirmations: number | undefined): Pick<L1Options, "finality"> {
  return confirmations === undefined ? {} : { finality: { confirmations: BigInt(confirmations) } };
}

/** Opens a LevelDB folder, created if missing. Rejects with a plain sentence when another process has it. */
export async function openLevel(folder: string): Promise<Level<Uint8Array, Uint8Array>> {
  await mkdir(folder, { recursive: true });
  const store = new Level<Uint8Array, Uint8Array>(folder, { keyEncoding: "view", valueEncoding: "view" });
  try {
    await store.open();
  } catch (error) {
    const locked = error instanceof Error && (error.cause as { code?: string } | undefined)?.code === "LEVEL_LOCKED";
    if (locked) throw new UsageError(`another process has ${folder} open; stop it first`);
    throw error;
  }
  return store;
}
