import { readFile } from "node:fs/promises";

/** Ticks of the scheduler's accounting in a second; the same on every Linux that Node runs on. */
const TICKS = 100;

/** CPU time of a process with all its threads, in µs; NaN where the system has no /proc. */
export async function cpuOf(pid: number): Promise<number> {
  const stat = await readFile(`/proc/${pid}/stat`, "utf8").catch(() => "");
  // The second field is the program's name in brackets, which may hold spaces.
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return ((Number(fields[11] ?? Number.NaN) + Number(fields[12])) / TICKS) * 1e6;
}

/**
 * Resident memory of a process in MB; NaN where the system has no /proc. Without mapped files: LevelDB maps those that
 * it reads, and the system takes their pages back when it needs them.
 */
export async function memoryOf(pid: number): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, "utf8").catch(() => "");
  return (Number(/RssAnon:\s+(\d+) kB/.exec(status)?.[1] ?? Number.NaN) * 1024) / 1e6;
}
