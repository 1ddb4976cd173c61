import type { ServerResponse } from "node:http";
import { ServerError } from "../http/errors.ts";

/** Limits of the bytes in request bodies and unread responses. */
export interface MemoryLimits {
  /** Per key, or per address where no key is needed. */
  readonly perCaller: number;
  /** Of all callers. */
  readonly total: number;
}

export const DEFAULT_MEMORY_LIMITS: MemoryLimits = { perCaller: 128 * 1024 * 1024, total: 512 * 1024 * 1024 };

/** Slow readers are disconnected after minutes, so a short wait is enough. */
const RETRY_SECONDS = 5;

/** Counts the bytes of bodies and unread responses by caller, and refuses more than the limits. */
export class HeldBytes {
  readonly limits: MemoryLimits;
  readonly #byCaller = new Map<string, number>();
  #total = 0;

  constructor(limits: MemoryLimits) {
    this.limits = limits;
  }

  get total(): number {
    return this.#total;
  }

  of(caller: string): number {
    return this.#byCaller.get(caller) ?? 0;
  }

  /** The bytes of one request, until its response or its connection ends. */
  hold(caller: string, response: ServerResponse): Held {
    const held = new Held(this, caller);
    response.once("finish", () => held.release()).once("close", () => held.release());
    return held;
  }

  /** Throws `rate_limited` or `overloaded` when `bytes` more would exceed a limit. */
  require(caller: string, bytes: number): void {
    const headers = { "retry-after": String(RETRY_SECONDS) };
    if (this.of(caller) + bytes > this.limits.perCaller) {
      const detail = `Bodies and unread responses of this caller would take more than ${this.limits.perCaller} bytes. Read the responses, or send fewer requests at once.`;
      throw new ServerError("rate_limited", detail, { headers });
    }
    if (this.#total + bytes > this.limits.total) throw new ServerError("overloaded", undefined, { headers });
  }

  change(caller: string, bytes: number): void {
    const now = this.of(caller) + bytes;
    if (now === 0) this.#byCaller.delete(caller);
    else this.#byCaller.set(caller, now);
    this.#total += bytes;
  }
}

export class Held {
  readonly #all: HeldBytes;
  readonly #caller: string;
  #bytes = 0;
  #released = false;

  constructor(all: HeldBytes, caller: string) {
    this.#all = all;
    this.#caller = caller;
  }

  /** The caller's limit. */
  get most(): number {
    return this.#all.limits.perCaller;
  }

  /** Takes more bytes. Throws `rate_limited` or `overloaded` beyond a limit. */
  demand(bytes: number): void {
    this.#all.require(this.#caller, bytes);
    this.take(bytes);
  }

  /** Takes bytes that already exist, such as a response. Beyond a limit, further requests are refused. */
  take(bytes: number): void {
    if (this.#released) return;
    this.#bytes += bytes;
    this.#all.change(this.#caller, bytes);
  }

  release(): void {
    this.take(-this.#bytes);
    this.#released = true;
  }
}
