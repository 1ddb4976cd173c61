import { later } from "../errors.ts";
import { TokenBuckets } from "./rate-limit.ts";

const DAY_SECONDS = 86_400;

/** Default of `MINTMARK_FILLS_PER_DAY`. */
export const DEFAULT_FILLS_PER_DAY = 10_000;

/**
 * The fills of orders that the operator brings to L1 at its cost. Each application has so many a
 * day, which refill evenly. The count is in memory, and starts anew with the server.
 */
export class FillBudget {
  readonly #buckets: TokenBuckets;

  /** `now` returns milliseconds. */
  constructor(fillsPerDay: number, now: () => number) {
    const quota = { units: fillsPerDay, windowSeconds: DAY_SECONDS };
    this.#buckets = new TokenBuckets("fills", quota, now);
  }

  /**
   * Counts a fill of an application, takes it, and gives it back if it was refused or known before.
   * Throws `rate_limited` when none is left.
   */
  async count<T>(
    applicationId: string,
    work: () => Promise<T>,
    isNew: (result: T) => boolean,
  ): Promise<T> {
    const { granted, retrySeconds } = this.#buckets.take(applicationId, 1);
    if (!granted) {
      const most = this.#buckets.quota.units;
      const detail = `This operator settles ${most} fills of an application a day; retry after ${retrySeconds} seconds.`;
      throw later("rate_limited", retrySeconds, detail);
    }
    let isUsed = false;
    try {
      const result = await work();
      isUsed = isNew(result);
      return result;
    } finally {
      if (!isUsed) this.#buckets.giveBack(applicationId, 1);
    }
  }
}
