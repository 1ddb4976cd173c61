import { createWriteStream } from "node:fs";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { endProcess, startMintmark, untilAnswer } from "../sandbox/process.ts";
import type { Process } from "./processes.ts";
import type { UpOptions } from "./record.ts";

/** Beside the limits of a server's shutdown. */
const SLACK_MS = 20_000;
const HOUR_MS = 3_600_000;

/**
 * Starts the processes that do not end, with their settings alone, and resolves when each is ready. `ended` rejects when
 * one of them ends by itself.
 */
export async function startProcesses(
  folder: string,
  processes: readonly Process[],
  { progress, signal }: Pick<UpOptions, "progress" | "signal">,
) {
  const logs = join(folder, "logs");
  await mkdir(logs, { recursive: true });
  const children: ReturnType<typeof start>[] = [];
  const failures: Promise<never>[] = [];
  const stop = async () =>
    void (await Promise.all(children.map(({ child, mostMs }) => endProcess(child, "SIGTERM", mostMs))));
  const lasting = processes.filter(({ every }) => every === undefined);
  for (const { name, command, settings } of lasting) {
    const log = join(logs, `${name}.log`);
    const started = start(command, settings, log);
    children.push(started);
    const failure = new Promise<never>((_, reject) => {
      const { child } = started;
      child.once("exit", (code, by) => reject(new Error(`the ${name} ended with ${code ?? by}; ${log} says why`)));
      child.once("error", reject);
    });
    failures.push(failure);
  }
  const ended = Promise.race(failures);
  ended.catch(() => {});
  const waiting = new AbortController();
  try {
    for (const { name, readyUrl } of lasting) {
      if (readyUrl === null) continue;
      progress(`waiting until the ${name} is ready`);
      const stopped = AbortSignal.any([signal, waiting.signal]);
      await Promise.race([untilAnswer(readyUrl, ({ ok }) => ok, stopped), ended]);
    }
  } catch (error) {
    waiting.abort();
    await stop();
    throw error;
  }
  // As the timers of systemd do.
  const timers = processes.flatMap(({ name, command, settings, every }) => {
    if (every === undefined) return [];
    const run = () => void children.push(start(command, settings, join(logs, `${name}.log`)));
    run();
    return [setInterval(run, HOUR_MS)];
  });
  const stopAll = () => {
    timers.forEach(clearInterval);
    return stop();
  };
  return { ended, stop: stopAll };
}

function start(command: readonly string[], settings: Readonly<Record<string, string>>, log: string) {
  const child = startMintmark(command, settings, true);
  const file = createWriteStream(log, { flags: "a", mode: 0o600 });
  child.stdout?.pipe(file, { end: false });
  child.stderr?.pipe(file, { end: false });
  child.once("close", () => file.end());
  const { MINTMARK_DRAIN_SECONDS: drain = 0, MINTMARK_SHUTDOWN_SECONDS: shutdown = 10 } = settings;
  /** Time to end in order. */
  const mostMs = (Number(drain) + Number(shutdown)) * 1_000 + SLACK_MS;
  return { child, mostMs };
}
