import { type Backoff, backoffDelay } from "./backoff.ts";
import { messageOf } from "./errors.ts";
import type { Hash } from "./model.ts";
import type { Clock } from "./ports.ts";

/** Retry of what L1 would refuse. */
export const RETRY: Backoff = { firstMs: 5_000, maxMs: 600_000 };
/**
 * Retry of what L1 refused in a transaction. That costs gas, so no wallet and no token may say yes
 * when it is tried and no on L1 for long.
 */
export const RESEND: Backoff = { firstMs: 600_000, maxMs: 86_400_000 };
/** Most characters of a node's message. */
const MOST_TEXT = 1_000;

/** Remembers what L1 has refused, and the time of the clock before which it is not tried again. */
export class Refusals<K> {
  readonly #clock: Clock;
  readonly #refused = new Map<K, { readonly times: number; readonly notBefore: number }>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Holds it longer each time. Returns the time until which it does. */
  hold(key: K, backoff: Backoff): number {
    const times = (this.#refused.get(key)?.times ?? 0) + 1;
    const notBefore = this.#clock() + backoffDelay(backoff, times);
    this.#refused.set(key, { times, notBefore });
    return notBefore;
  }

  /** The time until which it is held; 0 when it never was. */
  heldUntil(key: K): number {
    return this.#refused.get(key)?.notBefore ?? 0;
  }

  isHeld(key: K): boolean {
    return this.heldUntil(key) > this.#clock();
  }

  forget(key: K): void {
    this.#refused.delete(key);
  }
}

/**
 * Why L1 would refuse a call now; null when it would not. A node that answers otherwise but cannot
 * try this one says nothing of the others, so it rejects only when L1 cannot be asked anything.
 */
export async function refusalNow(
  tried: () => Promise<string | null>,
  l1: { blockNumber(): Promise<bigint> },
): Promise<string | null> {
  try {
    return await tried();
  } catch (error) {
    await l1.blockNumber();
    return `It could not be tried: ${messageOf(error)}`.slice(0, MOST_TEXT);
  }
}

/** The reason on record for a part of a transaction that L1 took. */
export function refusedInside(what: string, refusal: string): string {
  return `L1 took the transaction but refused this ${what} in it: ${refusal}`.slice(0, MOST_TEXT);
}

/**
 * Sends a group in one transaction, and yields each of it with L1's refusal; null for none. When L1
 * reverts the whole, it sends each half by itself, so one that causes a revert costs the others a
 * few transactions, and then waits alone.
 */
export async function* sentTogether<T>(
  group: readonly T[],
  send: (
    group: readonly T[],
  ) => Promise<{ readonly refusals: readonly (string | null)[] | null; readonly txHash: Hash }>,
): AsyncGenerator<readonly [one: T, refusal: string | null], void, undefined> {
  const { refusals, txHash } = await send(group);
  if (refusals === null && group.length > 1) {
    const half = Math.ceil(group.length / 2);
    yield* sentTogether(group.slice(0, half), send);
    yield* sentTogether(group.slice(half), send);
    return;
  }
  for (const [i, one] of group.entries())
    yield [one, refusals === null ? `transaction ${txHash} reverted` : (refusals[i] ?? null)];
}
