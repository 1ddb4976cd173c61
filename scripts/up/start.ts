import type { ChildProcess } from "node:child_process";
import { createWriteStream } from "node:fs";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { endProcess, startMintmark, untilAnswer } from "../sandbox/process.ts";
import type { Process } from "./processes.ts";

/** Processes that run until they are stopped. */
export interface Running {
  /** Rejects when one of them ends by itself. */
  readonly ended: Promise<never>;
  stop(): Promise<void>;
}

/** Beside the limits of a server's shutdown. */
const SLACK_MS = 20_000;
const HOUR_MS = 3_600_000;

interface Child {
  readonly child: ChildProcess;
  /** Time to end in order. */
  readonly mostMs: number;
}

/** Starts the processes that do not end, with their settings alone, and resolves when each is ready. */
export async function startProcesses(
  folder: string,
  processes: readonly Process[],
  { onProgress, signal }: { readonly onProgress: (step: string) => void; readonly signal: AbortSignal },
): Promise<Running> {
  const logs = join(folder, "logs");
  await mkdir(logs, { recursive: true });
  const children: Child[] = [];
  const failures: Promise<never>[] = [];
  const stop = async () =>
    void (await Promise.all(children.map(({ child, mostMs }) => endProcess(child, "SIGTERM", mostMs))));
  const lasting = processes.filter(({ every }) => every === undefined);
  for (const { name, command, settings } of lasting) {
    const log = join(logs, `${name}.log`);
    const started = start(command, settings, log);
    const { child } = started;
    children.push(started);
    const failure = new Promise<never>((_, reject) => {
      child.once("exit", (code, by) => reject(new Error(`the ${name} ended with ${code ?? by}; ${log} says why`)));
      child.once("error", reject);
    });
    failure.catch(() => {});
    failures.push(failure);
  }
  const ended = Promise.race(failures);
  ended.catch(() => {});
  const waiting = new AbortController();
  try {
    for (const { name, readyUrl } of lasting) {
      if (readyUrl === null) continue;
      onProgress(`waiting until the ${name} is ready`);
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
  return {
    ended,
    async stop() {
      timers.forEach(clearInterval);
      await stop();
    },
  };
}

function start(command: readonly string[], settings: Readonly<Record<string, string>>, log: string): Child {
  const child = startMintmark(command, settings, "own");
  const file = createWriteStream(log, { flags: "a", mode: 0o600 });
  child.stdout?.pipe(file, { end: false });
  child.stderr?.pipe(file, { end: false });
  child.once("close", () => file.end());
  const { MINTMARK_DRAIN_SECONDS: drain = 0, MINTMARK_SHUTDOWN_SECONDS: shutdown = 10 } = settings;
  return { child, mostMs: (Number(drain) + Number(shutdown)) * 1_000 + SLACK_MS };
}
