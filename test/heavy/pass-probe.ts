import { writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/**
 * Loaded into a server by `--import`: measures the CPU time of the event loop between timers that are due each
 * millisecond, so hardly more than one pass. At SIGUSR2 it writes the longest since the last signal, in ms.
 */
let last = process.threadCpuUsage();
let longest = 0;

function pass(): void {
  const { user, system } = process.threadCpuUsage(last);
  last = process.threadCpuUsage();
  longest = Math.max(longest, (user + system) / 1000);
}

setInterval(pass, 1).unref();
process.on("SIGUSR2", () => {
  pass();
  writeFileSync(join(tmpdir(), `mintmark-longest-pass-${process.pid}`), `${longest}\n`);
  longest = 0;
});
