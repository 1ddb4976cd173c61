import { createWriteStream } from "node:fs";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { endOf, endProcess, startMintmark, untilAnswer } from "../sandbox/process.ts";
import type { Process } from "./processes.ts";
import type { UpOptions } from "./record.ts";

/** Beside the limits of a server's shutdown. */
const SLACK_MS = 20_000;
const HOUR_MS = 3_600_000;

/**
 * Starts the processes that do not end, with their settings alone, and resolves when each is ready. `ended` aborts when
 * one of them ends by itself. Those that run again and again start then, as the timers of systemd do.
 */
export async function startProcesses(
  folder: string,
  processes: readonly Process[],
  { progress, signal }: Pick<UpOptions, "progress" | "signal">,
) {
  const logs = join(folder, "logs");
  await mkdir(logs, { recursive: true });
  const children: (readonly [child: ReturnType<typeof startMintmark>, mostMs: number])[] = [];
  const timers: NodeJS.Timeout[] = [];
  const start = ({ name, command, settings }: Process) => {
    const log = join(logs, `${name}.log`);
    const child = startMintmark(command, settings, true);
    const file = createWriteStream(log, { flags: "a", mode: 0o600 });
    child.stdout.pipe(file, { end: false });
    child.stderr.pipe(file, { end: false });
    child.once("close", () => file.end());
    const { MINTMARK_DRAIN_SECONDS: drain = 0, MINTMARK_SHUTDOWN_SECONDS: shutdown = 10 } = settings;
    // Time to end in order.
    children.push([child, (Number(drain) + Number(shutdown)) * 1_000 + SLACK_MS]);
    return endOf(child, (how) => `the ${name} ended with ${how}; ${log} says why`);
  };
  const stop = async () => {
    timers.forEach(clearInterval);
    await Promise.all(children.map(([child, mostMs]) => endProcess(child, "SIGTERM", mostMs)));
  };
  const lasting = processes.filter(({ every }) => every === undefined);
  const ended = AbortSignal.any(lasting.map(start));
  try {
    for (const { name, readyUrl } of lasting) {
      if (readyUrl === null) continue;
      progress(`waiting until the ${name} is ready`);
      await untilAnswer(readyUrl, ({ ok }) => ok, AbortSignal.any([signal, ended]));
    }
  } catch (error) {
    await stop();
    throw error;
  }
  for (const process of processes) {
    if (process.every === undefined) continue;
    start(process);
    timers.push(setInterval(start, HOUR_MS, process));
  }
  return { ended, stop };
}
