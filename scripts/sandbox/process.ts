import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import { setTimeout as pause } from "node:timers/promises";
import { fileURLToPath } from "node:url";

/** The command line of this package: its source, or compiled. */
export const MAIN = fileURLToPath(new URL("../mintmark.js", import.meta.url));

/**
 * Starts a command as a process of its own, with these settings alone.
 *
 * @param detached - keeps a terminal's Ctrl-C from it, so that it ends in order when it is told to
 */
export function startMintmark(
  command: readonly string[],
  settings: Readonly<Record<string, string>>,
  detached = false,
) {
  const others = Object.entries(process.env).filter(([name]) => !name.startsWith("MINTMARK_"));
  return spawn(process.execPath, ["--disable-warning=ExperimentalWarning", MAIN, ...command], {
    env: { ...Object.fromEntries(others), ...settings },
    detached,
    stdio: ["ignore", "pipe", "pipe"],
  });
}

/**
 * Sends a signal to a process that has not ended, and resolves when it has; kills it after a time,
 * if one is given.
 */
export async function endProcess(
  child: ChildProcess,
  signal: NodeJS.Signals,
  mostMs?: number,
): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = new Promise((done) => child.once("exit", done));
  child.kill(signal);
  const limit = mostMs === undefined ? undefined : setTimeout(() => child.kill("SIGKILL"), mostMs);
  await ended;
  clearTimeout(limit);
}

/** Aborts once a process has ended, or could not start. */
export function endOf(
  child: ChildProcess,
  told = (how: unknown) => `the process ended with ${how}`,
): AbortSignal {
  const ended = new AbortController();
  child.once("exit", (code, signal) => ended.abort(new Error(told(code ?? signal))));
  child.once("error", (error) => ended.abort(error));
  return ended.signal;
}

/** Asks a URL until its answer is as wanted. Rejects with the signal's reason once it aborts. */
export async function untilAnswer(
  url: string,
  isWanted: (reply: Response) => boolean,
  signal: AbortSignal,
) {
  for (;;) {
    signal.throwIfAborted();
    const reply = await fetch(url, { signal }).catch(() => null);
    await reply?.body?.cancel();
    if (reply !== null && isWanted(reply)) return;
    await pause(100, undefined, { signal }).catch(() => {});
  }
}

/**
 * The wanted port on 127.0.0.1 if free, else one of the next twenty. 0: any, which the system
 * chooses.
 */
export async function freePort(wanted: number): Promise<number> {
  const last = wanted === 0 ? 0 : wanted + 20;
  for (let port = wanted; port <= last; port++) {
    const probe = createServer().listen({ port, host: "127.0.0.1" });
    if ((await once(probe, "listening").catch(() => null)) === null) continue;
    const { port: found } = probe.address() as AddressInfo;
    await once(probe.close(), "close");
    return found;
  }
  throw new Error(`no free port from ${wanted} to ${last} on 127.0.0.1`);
}
