import type { FastifyReply } from "fastify";
import { later, ServerError } from "../errors.ts";

/** Units per window. {@link Account} defines their costs. */
export interface Quota {
  readonly units: number;
  readonly windowSeconds: number;
}

export interface RateLimits {
  /**
   * Per API key. A request of the largest size must fit. All keys of an application have {@link
   * KEYS_AT_ONCE} of it.
   */
  readonly key: Quota;
  /** Failed authentications per address. */
  readonly failedAuthentication: Quota;
  /** Public reads per address. */
  readonly publicReads: Quota;
}

/** An application's limit lets this many of its keys use their whole limit at the same time. */
const KEYS_AT_ONCE = 4;

export const DEFAULT_RATE_LIMITS: RateLimits = {
  key: { units: 600_000, windowSeconds: 60 },
  failedAuthentication: { units: 30, windowSeconds: 60 },
  publicReads: { units: 600, windowSeconds: 60 },
};

interface Grant {
  readonly granted: boolean;
  /** Whole units left. */
  readonly remaining: number;
  /** Seconds until the bucket is full again. */
  readonly resetSeconds: number;
  /** Seconds until the demand would be granted; 0 when it was. */
  readonly retrySeconds: number;
}

interface Bucket {
  units: number;
  updatedAt: number;
}

/**
 * Most callers remembered. The least recently seen is dropped first, which can only favour a
 * caller.
 */
const MAX_BUCKETS = 10_000;

/**
 * Token buckets by name. Each refills evenly and holds at most its quota. Those of tenants are
 * larger.
 */
export class TokenBuckets {
  readonly quota: Quota;
  readonly #name: string;
  readonly #now: () => number;
  readonly #buckets = new Map<string, Bucket>();
  readonly #tenants: TokenBuckets | undefined;

  /**
   * `name` is the policy's name in the RateLimit fields; `now` returns milliseconds, by default of
   * a monotonic clock. With `hasTenants`, callers take from their tenant's bucket too.
   */
  constructor(
    name: string,
    quota: Quota,
    now: () => number = () => performance.now(),
    hasTenants = false,
  ) {
    this.#name = name;
    this.quota = quota;
    this.#now = now;
    if (hasTenants)
      this.#tenants = new TokenBuckets(name, { ...quota, units: KEYS_AT_ONCE * quota.units }, now);
  }

  /**
   * Takes `cost` units of the caller's bucket and its tenant's; nothing when one of them has fewer.
   */
  take(caller: string, cost: number, tenant = ""): Grant {
    const ofTenant = this.#tenants?.take(tenant, cost);
    if (ofTenant?.granted === false) return ofTenant;
    const { units, windowSeconds } = this.quota;
    const perSecond = units / windowSeconds;
    const bucket = this.#refilled(caller, perSecond);
    const granted = bucket.units >= cost;
    if (granted) bucket.units -= cost;
    else this.#tenants?.giveBack(tenant, cost);
    return {
      granted,
      remaining: Math.max(0, Math.floor(bucket.units)),
      resetSeconds: Math.ceil((units - bucket.units) / perSecond),
      retrySeconds: granted ? 0 : Math.max(1, Math.ceil((cost - bucket.units) / perSecond)),
    };
  }

  /** The largest part of its quota that a caller has used: 0 to 1. */
  mostUsed(): number {
    const { units, windowSeconds } = this.quota;
    const now = this.#now();
    const used = this.#buckets.values().map((bucket) => {
      const refilled = (Math.max(0, now - bucket.updatedAt) / 1000) * (units / windowSeconds);
      return (units - bucket.units - refilled) / units;
    });
    return used.reduce((most, part) => Math.max(most, part), 0);
  }

  /** Returns units that were taken for nothing. */
  giveBack(caller: string, units: number): void {
    const bucket = this.#refilled(caller, this.quota.units / this.quota.windowSeconds);
    bucket.units = Math.min(this.quota.units, bucket.units + units);
    // A full bucket needs no entry, and an entry could push out a bucket that is not full.
    if (bucket.units === this.quota.units) this.#buckets.delete(caller);
  }

  /**
   * Takes units and sets the IETF RateLimit fields. Throws `rate_limited` with Retry-After when too
   * few are left.
   */
  spend(caller: string, cost: number, reply: FastifyReply, tenant?: string): void {
    const grant = this.take(caller, cost, tenant);
    this.#show(grant, reply);
    if (grant.granted) return;
    const { retrySeconds } = grant;
    throw later(
      "rate_limited",
      retrySeconds,
      `Too many requests; retry after ${retrySeconds} seconds.`,
    );
  }

  /** Takes units on credit. Further requests wait until the debt is refilled. */
  owe(caller: string, cost: number, reply: FastifyReply, tenant = ""): void {
    this.#tenants?.owe(tenant, cost, reply);
    const { units, windowSeconds } = this.quota;
    const bucket = this.#refilled(caller, units / windowSeconds);
    bucket.units = Math.max(-units, bucket.units - cost);
    const resetSeconds = Math.ceil(((units - bucket.units) * windowSeconds) / units);
    this.#show({ remaining: Math.max(0, Math.floor(bucket.units)), resetSeconds }, reply);
  }

  #show(
    { remaining, resetSeconds }: Pick<Grant, "remaining" | "resetSeconds">,
    reply: FastifyReply,
  ): void {
    const { units, windowSeconds } = this.quota;
    reply.header("ratelimit-policy", `"${this.#name}";q=${units};w=${windowSeconds}`);
    reply.header("ratelimit", `"${this.#name}";r=${remaining};t=${resetSeconds}`);
  }

  #refilled(caller: string, perSecond: number): Bucket {
    const now = this.#now();
    const bucket = this.#buckets.get(caller) ?? { units: this.quota.units, updatedAt: now };
    // A clock that goes back changes nothing.
    const elapsed = Math.max(0, now - bucket.updatedAt) / 1000;
    bucket.units = Math.min(this.quota.units, bucket.units + elapsed * perSecond);
    bucket.updatedAt = now;
    this.#buckets.delete(caller);
    this.#buckets.set(caller, bucket);
    if (this.#buckets.size > MAX_BUCKETS) {
      const [oldest] = this.#buckets.keys();
      if (oldest !== undefined) this.#buckets.delete(oldest);
    }
    return bucket;
  }
}

/** Adds to a caller's count. A count of nothing is not kept. */
export function add(counts: Map<string, number>, name: string, more: number): void {
  const now = (counts.get(name) ?? 0) + more;
  if (now === 0) counts.delete(name);
  else counts.set(name, now);
}

/** The open streams of each key, up to a limit. */
export class StreamSlots {
  readonly perKey: number;
  readonly #open = new Map<string, number>();

  constructor(perKey: number) {
    this.perKey = perKey;
  }

  /** Takes a slot of the key; returns the function that releases it. Throws `too_many_streams`. */
  take(keyId: string): () => void {
    if ((this.#open.get(keyId) ?? 0) >= this.perKey) throw new ServerError("too_many_streams");
    add(this.#open, keyId, 1);
    return () => add(this.#open, keyId, -1);
  }
}
