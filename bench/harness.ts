import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync } from "node:fs";
import { chmod, mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import type { Readable } from "node:stream";
import { text } from "node:stream/consumers";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import type { Column, Row, SectionResult } from "./report.ts";

/** Takes one line for people. */
export type Progress = (line: string) => void;

/** A part of the benchmark, run by name. */
export interface Section extends Omit<SectionResult, "rows"> {
  rows(progress: Progress): Promise<readonly Row[]>;
}

/** The result of a section, without the columns that nobody measured. */
export async function resultOf(section: Section, progress: Progress): Promise<SectionResult> {
  const rows = await section.rows(progress);
  const columns = section.columns.filter(({ key }) =>
    rows.some(({ values }) => (values[key] ?? null) !== null),
  );
  return { ...section, columns, rows };
}

/** An option of a command that takes no value. */
export const FLAG = { type: "boolean", default: false } as const;

const ROUNDS = 11;
/** Minimum of a round, because the operating system's accounting of CPU time is coarse. */
const ROUND_MS = 60;
/** A slow subject gets fewer rounds, but at least three. */
const SUBJECT_BUDGET_MS = 2_500;
const MIN_ROUNDS = 3;

export interface Work {
  /** Runs before each run, unmeasured. */
  prepare?(): void;
  /** Operations of a run. */
  readonly count: number;
  run(): void;
}

/** A row whose figures are measured by {@link measuredRows}. */
export interface Subject extends Omit<Row, "values"> {
  /** Work by column key; undefined where the subject cannot do it. */
  readonly works: Readonly<Record<string, Work | undefined>>;
}

/**
 * User CPU time, the median of several rounds: nanoseconds an operation, or thousand operations a
 * second where more is better. Counts the whole process, so work on other threads counts too.
 * Subjects take turns, so a slow minute of the machine affects all of them.
 */
export async function measuredRows(
  columns: readonly Column[],
  subjects: readonly Subject[],
  progress: Progress,
) {
  const rows = subjects.map(({ works, ...row }) => ({
    ...row,
    values: {} as Record<string, number | null>,
  }));
  for (const { key, better } of columns) {
    const measured = subjects.flatMap(({ label, works: { [key]: work } }, row) =>
      work ? [{ label, work, row, spent: 0, samples: [] as number[] }] : [],
    );
    for (const { label, work } of measured) {
      progress(`${key}, warming up: ${label}`);
      round(work);
    }
    // The engine compiles hot code on another thread. This lets it finish.
    await sleep(300);
    for (let i = 0; i < ROUNDS; i++) {
      for (const subject of measured) {
        if (i >= MIN_ROUNDS && subject.spent > SUBJECT_BUDGET_MS) continue;
        progress(`${key}, round ${i + 1} of ${ROUNDS}: ${subject.label}`);
        const { operations, ns } = round(subject.work);
        subject.samples.push(ns / operations);
        subject.spent += ns / 1e6;
        await sleep(0);
      }
    }
    for (const { values } of rows) values[key] = null;
    for (const { row, samples } of measured)
      Object.assign(rows[row]?.values ?? {}, {
        [key]: better === "lower" ? median(samples) : 1e6 / median(samples),
      });
  }
  return rows;
}

function round(work: Work): { operations: number; ns: number } {
  let operations = 0;
  let microseconds = 0;
  while (microseconds < ROUND_MS * 1000) {
    work.prepare?.();
    const before = process.cpuUsage();
    work.run();
    microseconds += process.cpuUsage(before).user;
    operations += work.count;
  }
  return { operations, ns: microseconds * 1000 };
}

/** Measures some work: wall-clock, and CPU time of the event loop and of all threads. */
export async function costOf(work: () => Promise<unknown>) {
  const start = performance.now();
  const all = process.cpuUsage();
  const loop = process.threadCpuUsage();
  await work();
  const ofLoop = process.threadCpuUsage(loop);
  const ofAll = process.cpuUsage(all);
  const ms = performance.now() - start;
  return { ms, loopUs: ofLoop.user + ofLoop.system, allUs: ofAll.user + ofAll.system };
}

/** Ticks of the scheduler's accounting in a second; constant on every Linux that Node supports. */
const TICKS = 100;

/** CPU time of a process with all its threads, in µs; NaN without /proc. */
export async function cpuOf(pid: number): Promise<number> {
  const stat = await readFile(`/proc/${pid}/stat`, "utf8").catch(() => "");
  // The second field is the program's name in brackets, and can contain spaces.
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return ((Number(fields[11] ?? Number.NaN) + Number(fields[12])) / TICKS) * 1e6;
}

/** Sends each request once; each of the callers sends the next one after the answer to its last. */
export async function fromCallers<T>(
  callers: number,
  requests: Iterable<T>,
  send: (request: T) => Promise<unknown>,
) {
  const left = Iterator.from(requests);
  const caller = async () => {
    for (const request of left) await send(request);
  };
  await Promise.all(Array.from({ length: callers }, caller));
}

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  const upper = sorted[middle] ?? Number.NaN;
  return sorted.length % 2 === 1 ? upper : (upper + (sorted[middle - 1] ?? Number.NaN)) / 2;
}

export function medians<K extends string>(
  samples: readonly Readonly<Record<K, number>>[],
): Record<K, number> {
  const keys = Object.keys(samples[0] ?? {}) as K[];
  const found = keys.map((key) => [key, median(samples.map((sample) => sample[key]))]);
  return Object.fromEntries(found) as Record<K, number>;
}

/** The median of the wall-clock times of some runs, in milliseconds. */
export async function medianMs(
  count: number,
  work: (i: number) => Promise<unknown>,
): Promise<number> {
  const samples: number[] = [];
  for (let i = 0; i < count; i++) {
    const start = performance.now();
    await work(i);
    samples.push(performance.now() - start);
  }
  return median(samples);
}

/** This process's resident set now. */
export const megabytes = () => process.memoryUsage.rss() / 1e6;
/** The largest that this process's resident set has been. */
export const peakMegabytes = () => (process.resourceUsage().maxRSS * 1_024) / 1e6;

/**
 * This process's own memory now, without the files that it maps: the kernel drops those; NaN
 * without /proc.
 */
export function ownMegabytes(): number {
  const status = existsSync(STATUS) ? readFileSync(STATUS, "utf8") : "";
  return (Number(/^RssAnon:\s+(\d+) kB$/m.exec(status)?.[1] ?? Number.NaN) * 1_024) / 1e6;
}
const STATUS = "/proc/self/status";
const SAMPLE_MS = 50;

/** Runs some work. Gives the most that {@link ownMegabytes} is in samples meanwhile. */
export async function ownPeakOf(work: () => Promise<unknown>): Promise<number> {
  let peak = ownMegabytes();
  const sample = () => {
    peak = Math.max(peak, ownMegabytes());
  };
  const samples = setInterval(sample, SAMPLE_MS);
  try {
    await work();
  } finally {
    clearInterval(samples);
  }
  sample();
  return peak;
}

/** Runs `body` with a new folder, which PostgreSQL can access as another user, and removes it. */
export async function inFolder<T>(body: (folder: string) => Promise<T>): Promise<T> {
  const folder = await mkdtemp(join(tmpdir(), "mintmark-bench-"));
  await chmod(folder, 0o755);
  try {
    return await body(folder);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

interface Run {
  /** Node's own flags. */
  readonly options?: readonly string[];
  /** The first line of standard input, as JSON. */
  readonly input?: unknown;
  /** Standard input ends then; default at once. */
  readonly begin?: Promise<unknown>;
  /** Gets each line of standard error, which else is this process's. */
  readonly progress?: Progress;
}

/**
 * Starts a file beside this one as a process of its own. `said` is the end of its standard error.
 */
export function start(
  file: string,
  args: readonly string[],
  { options = [], input = null, begin = Promise.resolve(), progress }: Run,
) {
  const script = fileURLToPath(new URL(file, import.meta.url));
  const child = spawn(process.execPath, [...options, script, ...args], {
    stdio: ["pipe", "pipe", progress ? "pipe" : "inherit"],
  });
  child.stdin?.write(`${JSON.stringify(input)}\n`);
  void begin.then(() => child.stdin?.end());
  const started = { child, stdout: child.stdout as Readable, said: "" };
  if (child.stderr === null) return started;
  createInterface({ input: child.stderr }).on("line", (line) => {
    started.said = `${started.said}\n${line}`.slice(-2_000);
    progress?.(line);
  });
  return started;
}

/** Runs a file beside this one as a process of its own; resolves with its output. */
export async function run(file: string, args: readonly string[], how: Run): Promise<string> {
  const started = start(file, args, how);
  const [output, [exitCode, signal]] = await Promise.all([
    text(started.stdout),
    once(started.child, "exit"),
  ]);
  if (exitCode !== 0)
    throw new Error(
      `${[file, ...args].join(" ")} ended with ${signal ?? exitCode}: ${started.said.trim()}`,
    );
  return output;
}
