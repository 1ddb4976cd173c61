import { setTimeout as sleep } from "node:timers/promises";

/** A measured subject. */
export interface Subject {
  readonly label: string;
  /** Runs before each run, unmeasured. */
  prepare?(): void;
  /** Does the work once and returns its number of operations. */
  run(): number;
}

const ROUNDS = 11;
/** Minimum of a round, because the operating system's accounting of CPU time is coarse. */
const ROUND_MS = 60;
/** A slow subject gets fewer rounds, but at least three. */
const SUBJECT_BUDGET_MS = 2_500;
const MIN_ROUNDS = 3;

/**
 * Nanoseconds of user CPU time an operation: the median of several rounds. Counts the whole process, so work on other
 * threads counts too. Subjects take turns, so a slow minute of the machine affects all of them.
 */
export async function measure(
  subjects: readonly Subject[],
  progress: (line: string) => void,
): Promise<ReadonlyMap<string, number>> {
  for (const subject of subjects) {
    progress(`warming up: ${subject.label}`);
    round(subject);
  }
  // The engine compiles hot code on another thread. This lets it finish.
  await sleep(300);
  const samples = new Map(subjects.map(({ label }) => [label, [] as number[]]));
  const spent = new Map<string, number>();
  for (let i = 0; i < ROUNDS; i++) {
    for (const subject of subjects) {
      const before = spent.get(subject.label) ?? 0;
      if (i >= MIN_ROUNDS && before > SUBJECT_BUDGET_MS) continue;
      progress(`round ${i + 1} of ${ROUNDS}: ${subject.label}`);
      const { operations, ns } = round(subject);
      samples.get(subject.label)?.push(ns / operations);
      spent.set(subject.label, before + ns / 1e6);
      await sleep(0);
    }
  }
  return new Map([...samples].map(([label, values]) => [label, median(values)]));
}

function round(subject: Subject): { operations: number; ns: number } {
  let operations = 0;
  let microseconds = 0;
  while (microseconds < ROUND_MS * 1000) {
    subject.prepare?.();
    const before = process.cpuUsage();
    operations += subject.run();
    microseconds += process.cpuUsage(before).user;
  }
  return { operations, ns: microseconds * 1000 };
}

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  const upper = sorted[middle] ?? Number.NaN;
  return sorted.length % 2 === 1 ? upper : (upper + (sorted[middle - 1] ?? Number.NaN)) / 2;
}
