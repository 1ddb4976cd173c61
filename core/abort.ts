/** What a promise settles with, or the signal's reason once that is aborted; whatever makes the promise goes on unheard then. */
export function orAborted<T>(promise: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (signal === undefined) return promise;
  return new Promise((resolve, reject) => {
    const abort = (): void => reject(signal.reason);
    if (signal.aborted) abort();
    signal.addEventListener("abort", abort);
    promise.then(resolve, reject).finally(() => signal.removeEventListener("abort", abort));
  });
}

/** How a caller who waits can give up. */
export interface WaitOptions {
  /**
   * Gives up the wait: the promise rejects with the signal's reason, and then nothing has changed and nothing will. A change that is part
   * of a write already can no longer be taken out of it: the promise then settles with that write, as if there were no signal.
   */
  readonly signal?: AbortSignal | undefined;
}
