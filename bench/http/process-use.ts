import { readFile } from "node:fs/promises";

/** Ticks of the scheduler's accounting in a second; constant on every Linux that Node supports. */
const TICKS = 100;

/** CPU time of a process with all its threads, in µs; NaN without /proc. */
export async function cpuOf(pid: number): Promise<number> {
  const stat = await readFile(`/proc/${pid}/stat`, "utf8").catch(() => "");
  // The second field is the program's name in brackets, and can contain spaces.
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return ((Number(fields[11] ?? Number.NaN) + Number(fields[12])) / TICKS) * 1e6;
}

/**
 * Resident memory of a process in MB, without mapped files; NaN without /proc. LevelDB maps the files it reads, and the
 * system reclaims these pages when needed.
 */
export async function memoryOf(pid: number): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, "utf8").catch(() => "");
  return (Number(/RssAnon:\s+(\d+) kB/.exec(status)?.[1] ?? Number.NaN) * 1024) / 1e6;
}
