const WOKEN_AT_ONCE = 64; // Readers that wake together. The next group wakes after a pause.
// Pause between two groups, in ms. A group's work takes a fraction of it, so mints run in between;
// and a reader whose turn comes later gets more events in one write.
const PAUSE_MS = 25;

/**
 * Readers that wait for the next event of an application, which a key names. It wakes a bounded
 * number at once, the others group by group.
 */
export class Followers<K extends number | string = number> {
  readonly #waiting = new Map<K, Set<() => void>>();
  /** Woken readers that have not run yet, in order. One that leaves is removed from its set too. */
  readonly #due: Set<() => void>[] = [];
  #pausing = false;

  /** Resolves soon after the application's next {@link wake}; rejects with the signal's reason. */
  next(application: K, signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      signal.throwIfAborted();
      const waiting = this.#waiting.get(application) ?? new Set();
      this.#waiting.set(application, waiting);
      const leave = (): void => {
        waiting.delete(wake);
        signal.removeEventListener("abort", stop);
      };
      const wake = (): void => {
        leave();
        resolve();
      };
      const stop = (): void => {
        leave();
        reject(signal.reason);
      };
      waiting.add(wake);
      signal.addEventListener("abort", stop);
    });
  }

  /** An application's change is durable. Takes constant time, however many readers wait. */
  wake(application: K): void {
    const waiting = this.#waiting.get(application);
    if (waiting === undefined) return;
    this.#waiting.delete(application);
    this.#due.push(waiting);
    if (!this.#pausing) this.#wakeSome();
  }

  /**
   * The next group. It takes readers from the applications in turn, so that one with many readers
   * delays no other.
   */
  #wakeSome(): void {
    let left = WOKEN_AT_ONCE;
    for (
      let due = this.#due.shift();
      due !== undefined;
      due = left > 0 ? this.#due.shift() : undefined
    ) {
      for (const wake of due) {
        if (left === 0) break;
        left--;
        wake();
      }
      if (due.size > 0) this.#due.push(due);
    }
    this.#pausing = left < WOKEN_AT_ONCE;
    if (this.#pausing) setTimeout(() => this.#wakeSome(), PAUSE_MS);
  }
}
