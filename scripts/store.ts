import { mkdir } from "node:fs/promises";
import { Level } from "level";
import { requireWhole } from "../core/store/level-folder.ts";

/**
 * Opens a LevelDB folder, made when it is missing. Rejects with a plain sentence when another process has it, and with
 * `store_corrupt` when a part of it is gone.
 */
export async function openLevel(folder: string): Promise<Level<Uint8Array, Uint8Array>> {
  await mkdir(folder, { recursive: true });
  await requireWhole(folder);
  const store = new Level<Uint8Array, Uint8Array>(folder, { keyEncoding: "view", valueEncoding: "view" });
  try {
    await store.open();
  } catch (error) {
    const locked = error instanceof Error && (error.cause as { code?: string } | undefined)?.code === "LEVEL_LOCKED";
    if (locked) throw new Error(`another process has ${folder} open; stop it first`);
    throw error;
  }
  return store;
}
