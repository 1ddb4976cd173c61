/**
 * Shares the event loop among long work. Each piece of work waits for a turn, and each pass of the
 * loop gives one turn. So a small request waits for one piece at most. Callers with waiting pieces
 * take turns.
 */
export class EventLoopTurns {
  readonly #waiting = new Map<string, (() => void)[]>();
  /** By caller, the end of its newest large work. */
  readonly #alone = new Map<string, Promise<unknown>>();
  readonly #pauseMs: number;
  #last = Number.NEGATIVE_INFINITY;

  /** Turns are at least `pauseMs` apart. Default: one pass of the loop. */
  constructor(pauseMs = 0) {
    this.#pauseMs = pauseMs;
  }

  /**
   * Resolves at this caller's turn. Do the work before the next `await`, to stay in this pass of
   * the loop.
   */
  turn(caller: string): Promise<void> {
    return new Promise((resolve) => {
      if (this.#waiting.size === 0) this.#next();
      const queue = this.#waiting.get(caller);
      if (queue === undefined) this.#waiting.set(caller, [resolve]);
      else queue.push(resolve);
    });
  }

  /** Runs a caller's large work after its earlier large work, so one at a time is in memory. */
  async alone<T>(caller: string, work: () => Promise<T>): Promise<T> {
    const earlier = this.#alone.get(caller);
    const done = (earlier ?? Promise.resolve()).then(work);
    const over = Promise.allSettled([done]);
    this.#alone.set(caller, over);
    try {
      return await done;
    } finally {
      if (this.#alone.get(caller) === over) this.#alone.delete(caller);
    }
  }

  #next(): void {
    const wait = this.#last + this.#pauseMs - performance.now();
    if (wait > 0) setTimeout(() => this.#give(), wait);
    else setImmediate(() => this.#give());
  }

  #give(): void {
    const [next] = this.#waiting;
    if (next === undefined) return;
    const [caller, queue] = next;
    const go = queue.shift();
    // Puts the caller behind the others.
    this.#waiting.delete(caller);
    if (queue.length > 0) this.#waiting.set(caller, queue);
    this.#last = performance.now();
    if (this.#waiting.size > 0) this.#next();
    go?.();
  }
}
