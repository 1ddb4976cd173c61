import { mkdir } from "node:fs/promises";
import { resolve } from "node:path";
import { Level } from "level";

/**
 * Locks a folder for this process and returns the function that unlocks it. The lock belongs to the operating system,
 * on an empty database, so a dead process holds none. Rejects when another process or sandbox has the folder.
 */
export async function lockFolder(folder: string): Promise<() => Promise<void>> {
  await mkdir(folder, { recursive: true });
  const lock = new Level(resolve(folder, "lock"));
  try {
    await lock.open();
  } catch (error) {
    if (!isLocked(error)) throw error;
    throw new Error(`a sandbox already runs in ${folder}; stop it first, or set MINTMARK_SANDBOX to another folder`);
  }
  return () => lock.close();
}

function isLocked(error: unknown): boolean {
  const cause = error instanceof Error ? error.cause : undefined;
  return cause instanceof Error && "code" in cause && cause.code === "LEVEL_LOCKED";
}
