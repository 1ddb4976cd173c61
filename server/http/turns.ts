/**
 * Shares the event loop among long work: each piece of it waits for a turn, and one turn is given in each pass of the loop. So whatever
 * else waits, such as a small request of another tenant, waits for one piece at most. Callers with waiting pieces take turns.
 */
export class Turns {
  readonly #waiting = new Map<string, (() => void)[]>();
  /** By caller, when its last large work that was asked for is over. */
  readonly #alone = new Map<string, Promise<void>>();
  #taken = 0;

  /** How many turns were given, for tests and metrics. */
  get taken(): number {
    return this.#taken;
  }

  /** Resolves when it is this caller's turn. The work is done in the same pass of the loop if nothing is awaited before it. */
  turn(caller: string): Promise<void> {
    return new Promise((resolve) => {
      if (this.#waiting.size === 0) setImmediate(() => this.#give());
      const queue = this.#waiting.get(caller);
      if (queue === undefined) this.#waiting.set(caller, [resolve]);
      else queue.push(resolve);
    });
  }

  /** Does a caller's large work after its earlier large work, so that one of them at a time is in memory. */
  async alone<T>(caller: string, work: () => Promise<T>): Promise<T> {
    const earlier = this.#alone.get(caller);
    const done = (earlier ?? Promise.resolve()).then(work);
    const over = done.then(
      () => {},
      () => {},
    );
    this.#alone.set(caller, over);
    try {
      return await done;
    } finally {
      if (this.#alone.get(caller) === over) this.#alone.delete(caller);
    }
  }

  #give(): void {
    const [next] = this.#waiting;
    if (next === undefined) return;
    const [caller, queue] = next;
    const go = queue.shift();
    // Goes behind the other callers.
    this.#waiting.delete(caller);
    if (queue.length > 0) this.#waiting.set(caller, queue);
    if (this.#waiting.size > 0) setImmediate(() => this.#give());
    this.#taken += 1;
    go?.();
  }
}
