/** How a caller who waits can give up. */
export interface WaitOptions {
  /**
   * Gives up the wait: the promise rejects with the signal's reason, and then nothing has changed and nothing will. A change that is part
   * of a write already can no longer be taken out of it: the promise then settles with that write, as if there were no signal.
   */
  readonly signal?: AbortSignal | undefined;
}
