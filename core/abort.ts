/**
 * Settles like the promise, or rejects with the signal's reason once aborted. The promise's work
 * continues unheard.
 */
export function orAborted<T>(promise: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (signal === undefined) return promise;
  return new Promise((resolve, reject) => {
    const abort = (): void => reject(signal.reason);
    if (signal.aborted) abort();
    signal.addEventListener("abort", abort);
    promise.then(resolve, reject).finally(() => signal.removeEventListener("abort", abort));
  });
}

/** How a caller can cancel its wait. */
export interface WaitOptions {
  /**
   * Cancels the wait: rejects with the signal's reason, and nothing changes, unless a write already
   * has the change.
   */
  readonly signal?: AbortSignal | undefined;
}
