import { invalid, later, ServerError } from "../errors.ts";
import { TokenBuckets } from "./rate-limit.ts";

const DAY_SECONDS = 86_400;

/** Default of `MINTMARK_OWNER_RELAY_VAULTS`: one full list. */
export const DEFAULT_OWNER_RELAY_VAULTS = 256;

/**
 * The vaults that the operator withdraws at its cost for owners who sign in by themselves. Each
 * owner has so many a day, which refill evenly; 0 turns it off. The count is in memory, and starts
 * anew with the server.
 */
export class OwnerRelay {
  readonly #buckets: TokenBuckets;

  /** `now` returns milliseconds. */
  constructor(vaultsPerDay: number, now: () => number) {
    this.#buckets = new TokenBuckets(
      "owner-relay",
      { units: vaultsPerDay, windowSeconds: DAY_SECONDS },
      now,
    );
  }

  /** Vaults of one owner a day; 0 when the operator pays for none. */
  get vaultsPerDay(): number {
    return this.#buckets.quota.units;
  }

  /**
   * Throws `owner_relay_off`, or `rate_limited`, when the operator does not pay for so many vaults
   * now. Counts none.
   */
  requireFor(owner: string, vaults: number): void {
    this.#take(owner, vaults);
    this.#buckets.giveBack(owner, vaults);
  }

  /** Counts the vaults, does the work, and gives back those that it did not accept. */
  async count<T>(
    owner: string,
    vaults: number,
    work: () => Promise<T>,
    accepted: (result: T) => number,
  ): Promise<T> {
    this.#take(owner, vaults);
    let used = 0;
    try {
      const result = await work();
      used = Math.min(vaults, accepted(result));
      return result;
    } finally {
      this.#buckets.giveBack(owner, vaults - used);
    }
  }

  #take(owner: string, vaults: number): void {
    const most = this.vaultsPerDay;
    if (most === 0) throw new ServerError("owner_relay_off");
    if (vaults > most) {
      const detail = `Give at most ${most} vaults: this operator pays for so many of one owner a day.`;
      throw invalid("/vaults", detail, detail);
    }
    const { granted, remaining, retrySeconds } = this.#buckets.take(owner, vaults);
    if (granted) return;
    const detail = `This operator pays for ${remaining} more of your vaults now; retry after ${retrySeconds} seconds, or withdraw by your own transaction.`;
    throw later("rate_limited", retrySeconds, detail);
  }
}
