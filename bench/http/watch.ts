import { createHook } from "node:async_hooks";
import { Session } from "node:inspector/promises";
import { PerformanceObserver } from "node:perf_hooks";
import { AbstractChainedBatch } from "abstract-level";
import { machineMs } from "./connection.ts";
import { stagesIn } from "./stages.ts";

/** An event that took a while; times are of `machineMs`. */
export interface Held {
  readonly at: number;
  readonly ms: number;
}

/** One call into JavaScript, with its microtasks: meanwhile the event loop does nothing else. */
export interface Piece extends Held {
  /** CPU time of the loop's thread, without what garbage took. */
  readonly cpuMs: number;
  /** The innermost functions with the most samples, and their milliseconds. */
  readonly where: string;
}

/** A sample of the profile: the stage that ran until `at`; null for an idle loop. */
export interface Sample extends Held {
  readonly stage: string | null;
}

/** The work of a process. */
export interface Watched {
  readonly pieces: readonly Piece[];
  readonly samples: readonly Sample[];
  /** Writes to the store, each until it was on disk. */
  readonly writes: readonly Held[];
  readonly collections: readonly Held[];
  /** The share of the time for which the event loop was busy. */
  readonly busy: number;
}

/** The shortest piece, in CPU time, and the shortest write that are kept. */
const LEAST_MS = 5;
/** Microseconds between two samples of the profile. */
const SAMPLING_US = 1_000;
const NAMED = 3;
/** The profile's cost while the loop is idle, as a share of that time. */
const PROFILED = 0.05;

/**
 * Watches this process's event loop until the returned function is called.
 *
 * @param closely - whether to note pieces, samples, writes and garbage, which costs the loop itself
 */
export async function watch(closely = true): Promise<() => Promise<Watched>> {
  if (!closely) return watchBusy();
  const writes = watchWrites();
  const collections: Held[] = [];
  const clock = machineMs() - performance.now();
  const observer = new PerformanceObserver((list) => {
    for (const { startTime, duration } of list.getEntries())
      collections.push({ at: clock + startTime, ms: duration });
  });
  observer.observe({ entryTypes: ["gc"] });
  const session = new Session();
  session.connect();
  await session.post("Profiler.enable");
  await session.post("Profiler.setSamplingInterval", { interval: SAMPLING_US });
  await session.post("Profiler.start");
  const utilization = performance.eventLoopUtilization();
  const pieces = watchPieces();
  return async () => {
    const found = pieces.end();
    const { utilization: busy } = performance.eventLoopUtilization(utilization);
    const { profile } = await session.post("Profiler.stop");
    session.disconnect();
    observer.disconnect();
    const frames = framesIn(profile);
    const named = found.map((piece) => pieceOf(piece, collections, frames));
    const samples = frames.map(({ at, ms, stage }) => ({ at, ms, stage }));
    return { pieces: named, samples, writes: writes.end(), collections, busy };
  };
}

function watchBusy(): () => Promise<Watched> {
  const before = performance.eventLoopUtilization();
  return async () => {
    const { utilization: busy } = performance.eventLoopUtilization(before);
    return { pieces: [], samples: [], writes: [], collections: [], busy };
  };
}

type Profile = Parameters<typeof stagesIn>[0];
type Frame = Sample & { readonly name: string };

function framesIn(profile: Profile): readonly Frame[] {
  const { nodes, samples = [], timeDeltas = [], startTime } = profile;
  const stageOf = stagesIn(profile);
  const names = new Map(
    nodes.map(({ id, callFrame: { functionName, url } }) => [
      id,
      `${functionName} ${url.slice(url.lastIndexOf("/") + 1)}`.trim(),
    ]),
  );
  let at = startTime / 1_000;
  return samples.map((node, i): Frame => {
    const ms = Math.max(0, timeDeltas[i] ?? 0) / 1_000;
    at += ms;
    return { at, ms, stage: stageOf.get(node) ?? null, name: names.get(node) ?? "" };
  });
}

function pieceOf(
  { at, ms, cpuMs }: Omit<Piece, "where">,
  collections: readonly Held[],
  frames: readonly Frame[],
): Piece {
  const isWithin = (held: Held) => held.at >= at && held.at <= at + ms;
  const garbage = collections.filter(isWithin).reduce((sum, collection) => sum + collection.ms, 0);
  const sums = new Map<string, number>();
  for (const frame of frames.filter(isWithin))
    sums.set(frame.name, (sums.get(frame.name) ?? 0) + frame.ms);
  const most = [...sums].sort(([, a], [, b]) => b - a).slice(0, NAMED);
  const where = most.map(([name, took]) => `${name} ${took.toFixed(0)}`).join(", ");
  return { at, ms, cpuMs: Math.max(0, cpuMs - garbage), where };
}

/** Notes each long call into JavaScript. No two run at once, so each tick belongs to one call. */
function watchPieces() {
  const found: Omit<Piece, "where">[] = [];
  const ticks = new Set<number>();
  let depth = 0;
  let at = machineMs();
  let cpu = process.threadCpuUsage();
  let { idle } = performance.eventLoopUtilization();
  const hook = createHook({
    trackPromises: false,
    init(id, type) {
      if (type === "TickObject") ticks.add(id);
    },
    before(id) {
      const isTick = ticks.delete(id);
      if (depth++ > 0 || isTick) return;
      const { user, system } = process.threadCpuUsage(cpu);
      const idled = performance.eventLoopUtilization().idle - idle;
      const cpuMs = (user + system) / 1_000 - PROFILED * idled;
      const now = machineMs();
      if (cpuMs >= LEAST_MS) found.push({ at, ms: now - at, cpuMs });
      at = now;
      idle += idled;
      cpu = process.threadCpuUsage();
    },
    after() {
      depth--;
    },
  });
  hook.enable();
  return {
    end() {
      hook.disable();
      return found;
    },
  };
}

/** Notes each long write of every database of this process. */
function watchWrites() {
  const writes: Held[] = [];
  const { prototype } = AbstractChainedBatch;
  const { write } = prototype;
  prototype.write = async function (this: typeof prototype, ...args: unknown[]) {
    const at = machineMs();
    await Reflect.apply(write, this, args);
    const ms = machineMs() - at;
    if (ms >= LEAST_MS) writes.push({ at, ms });
  };
  return {
    end() {
      prototype.write = write;
      return writes;
    },
  };
}
