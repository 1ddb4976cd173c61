/** Readers that are woken at once, and then again after each pause. */
const WOKEN_AT_ONCE = 64;
/** ms between two such groups. What a group reads and writes takes a fraction of it, so mints go on in between. */
const PAUSE_MS = 5;

/**
 * Those who wait for an application's next event. However many they are, an event wakes a bounded number at once; the others follow
 * group by group, and find in the log whatever was told until then.
 */
export class Followers {
  readonly #waiting = new Map<number, Set<() => void>>();
  /** Woken by an event, and not called yet, in order. Who leaves meanwhile leaves its set too. */
  readonly #due: Set<() => void>[] = [];
  #pausing = false;

  /** Resolves soon after the application's next {@link wake}; rejects with the signal's reason. */
  next(applicationIndex: number, signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      signal.throwIfAborted();
      const waiting = this.#waiting.get(applicationIndex) ?? new Set();
      this.#waiting.set(applicationIndex, waiting);
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

  /** Something of the application has become durable. Takes the same time however many wait. */
  wake(applicationIndex: number): void {
    const waiting = this.#waiting.get(applicationIndex);
    if (waiting === undefined) return;
    this.#waiting.delete(applicationIndex);
    this.#due.push(waiting);
    if (!this.#pausing) this.#wakeSome();
  }

  /** One group, from the applications in turn, so that one with many readers holds up no other. */
  #wakeSome(): void {
    let left = WOKEN_AT_ONCE;
    for (let due = this.#due.shift(); due !== undefined; due = left > 0 ? this.#due.shift() : undefined) {
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
