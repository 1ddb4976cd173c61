import { setImmediate as nextPass } from "node:timers/promises";

/** Runs a task for each item, some at a time. Returns the results in order. */
export async function severalAtOnce<T, R>(
  all: readonly T[],
  work: (each: T, index: number) => Promise<R>,
  atOnce = 16,
): Promise<R[]> {
  const results: R[] = [];
  for (let first = 0; first < all.length; first += atOnce) {
    const some = all.slice(first, first + atOnce).map((each, i) => work(each, first + i));
    results.push(...(await Promise.all(some)));
  }
  return results;
}

/** Items of one piece, which takes a few ms. */
const PIECE = 2_048;

/**
 * Does synchronous work for each number below `count`, in order. After each piece of it, other work
 * that waits for the event loop gets a pass.
 */
export async function inPieces(count: number, work: (index: number) => void): Promise<void> {
  for (let first = 0; first < count; first += PIECE) {
    if (first > 0) await nextPass();
    const end = Math.min(first + PIECE, count);
    for (let index = first; index < end; index++) work(index);
  }
}

/** `Map.groupBy` {@link inPieces}. */
export async function groupedInPieces<K, T>(
  all: readonly T[],
  keyOf: (each: T) => K,
): Promise<Map<K, T[]>> {
  const groups = new Map<K, T[]>();
  await inPieces(all.length, (index) => {
    const each = all[index] as T;
    const key = keyOf(each);
    const group = groups.get(key);
    if (group === undefined) groups.set(key, [each]);
    else group.push(each);
  });
  return groups;
}

/** Runs tasks one after another, also after one that fails. */
export class Turns {
  #last: Promise<unknown> = Promise.resolve();

  run<T>(task: () => Promise<T>): Promise<T> {
    const turn = this.#last.then(task);
    this.#last = turn.catch(() => {});
    return turn;
  }
}

/**
 * Runs a task once at a time. Callers during a run share the next one, because the current one may
 * miss their change.
 */
export function sharedRuns(
  task: (signal?: AbortSignal) => Promise<void>,
): (signal?: AbortSignal) => Promise<void> {
  const turns = new Turns();
  let next: Promise<void> | null = null;
  return (signal) => {
    next ??= turns.run(() => {
      next = null;
      return task(signal);
    });
    return next;
  };
}
