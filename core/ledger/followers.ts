/** Those who wait for an application's next event. */
export class Followers {
  readonly #waiting = new Map<number, Set<() => void>>();

  /** Resolves at the application's next {@link wake}; rejects with the signal's reason. */
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

  /** Something of the application has become durable. */
  wake(applicationIndex: number): void {
    for (const wake of this.#waiting.get(applicationIndex) ?? []) wake();
  }
}
