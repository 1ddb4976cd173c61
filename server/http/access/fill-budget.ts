import { later } from "../errors.ts";
import { TokenBuckets } from "./rate-limit.ts";

const DAY_SECONDS = 86_400;

/** Default of `MINTMARK_FILLS_PER_DAY`. */
export const DEFAULT_FILLS_PER_DAY = 10_000;

/**
 * The fills of orders that the operator brings to L1 at its cost. Each application has so many a
 * day, which refill evenly. A new process begins with those of the last day, so that no restart
 * gives an application more, unless it has listed 20,000 orders since they were taken.
 */
export class FillBudget {
  readonly #buckets: TokenBuckets;
  readonly #earlier: (applicationId: string, since: number, most: number) => Promise<number>;
  /** Applications whose earlier fills are counted, or are about to be. */
  readonly #known = new Map<string, Promise<void>>();

  /**
   * @param now - milliseconds of any clock
   * @param earlier - fills of an application since a time of 1970's clock, at most so many
   */
  constructor(
    fillsPerDay: number,
    now: () => number,
    earlier: (applicationId: string, since: number, most: number) => Promise<number>,
  ) {
    const quota = { units: fillsPerDay, windowSeconds: DAY_SECONDS };
    this.#buckets = new TokenBuckets("fills", quota, now);
    this.#earlier = earlier;
  }

  /** The largest part of its fills that an application has used: 0 to 1. */
  get mostUsed(): number {
    return this.#buckets.mostUsed();
  }

  /**
   * Counts a new fill of an application, takes it, and gives it back if it was refused. Throws
   * `rate_limited` when none is left.
   */
  async count<T>(applicationId: string, work: () => Promise<T>): Promise<T> {
    await this.#counted(applicationId);
    const { granted, retrySeconds } = this.#buckets.take(applicationId, 1);
    if (!granted) {
      const most = this.#buckets.quota.units;
      const detail = `This operator settles ${most} fills of an application a day; retry after ${retrySeconds} seconds.`;
      throw later("rate_limited", retrySeconds, detail);
    }
    try {
      return await work();
    } catch (error) {
      this.#buckets.giveBack(applicationId, 1);
      throw error;
    }
  }

  /** Counts the fills of the last day before the first one of this process. */
  async #counted(applicationId: string): Promise<void> {
    const { units } = this.#buckets.quota;
    const known = this.#known.get(applicationId);
    if (known !== undefined) return known;
    const since = Date.now() - DAY_SECONDS * 1_000;
    const counting = this.#earlier(applicationId, since, units).then((fills) => {
      if (fills > 0) this.#buckets.take(applicationId, fills);
    });
    this.#known.set(applicationId, counting);
    return counting.catch((error) => {
      this.#known.delete(applicationId);
      throw error;
    });
  }
}
