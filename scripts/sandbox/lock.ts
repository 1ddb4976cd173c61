import { mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { resolve } from "node:path";

/**
 * Takes a folder for this process and returns the function that gives it back. Rejects when a living process has it; what a dead one left is
 * taken over.
 */
export async function lockFolder(folder: string): Promise<() => Promise<void>> {
  await mkdir(folder, { recursive: true });
  const file = resolve(folder, "lock");
  for (;;) {
    try {
      await writeFile(file, String(process.pid), { flag: "wx" });
      return () => rm(file, { force: true });
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
    }
    const holder = Number(await readFile(file, "utf8").catch(() => "0"));
    if (isAlive(holder)) {
      throw new Error(
        `a sandbox (process ${holder}) already runs in ${folder}; stop it first, or set MINTMARK_SANDBOX to another folder`,
      );
    }
    await rm(file, { force: true });
  }
}

function isAlive(pid: number): boolean {
  if (!Number.isInteger(pid) || pid <= 0) return false;
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
}
