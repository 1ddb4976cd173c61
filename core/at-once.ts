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
