import { setTimeout as sleep } from "node:timers/promises";
import { quantile } from "../bench/http/connection.ts";

/** CPU time of {@link control} on the machine for which bounds of CPU time hold. */
const CONTROL_MS = 5;

/**
 * Milliseconds of CPU that work of a fixed size takes now: more beside others on the same cores.
 */
function control(): number {
  const before = process.threadCpuUsage();
  const words = new Map<number, string>();
  for (let i = 0; i < 20_000; i++) words.set((i * 7919) % 20_011, `${i}`);
  if (words.size !== 20_000) throw new Error("the control did other work");
  const { user, system } = process.threadCpuUsage(before);
  return (user + system) / 1_000;
}

/** How many times slower than that machine this one is until the signal aborts; at least 1. */
export async function slownessUntil(signal: AbortSignal): Promise<number> {
  const times: number[] = [];
  while (!signal.aborted) {
    times.push(control());
    await sleep(100);
  }
  return Math.max(
    1,
    quantile(
      times.toSorted((a, b) => a - b),
      0.95,
    ) / CONTROL_MS,
  );
}
