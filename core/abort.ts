/** Settles like the promise, or rejects with the signal's reason once aborted. The promise's work continues unheard. */
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
   * Cancels the wait: the promise rejects with the signal's reason, and nothing changes. A change that is already part
   * of a write cannot be cancelled: then the promise settles with that write.
   */
  readonly signal?: AbortSignal | undefined;
}
