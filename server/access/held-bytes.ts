import type { ServerResponse } from "node:http";
import { ServerError } from "../http/errors.ts";

/** Bytes of request bodies and unread answers that the server may hold. */
export interface MemoryLimits {
  /** Of one key, or of one address where no key is asked for. */
  readonly perCaller: number;
  /** Of all callers. */
  readonly total: number;
}

export const DEFAULT_MEMORY_LIMITS: MemoryLimits = { perCaller: 128 * 1024 * 1024, total: 512 * 1024 * 1024 };

/** Slow readers are given up after minutes, so a repetition pays soon, and often. */
const RETRY_SECONDS = 5;

/** Counts the bytes of bodies and unread answers by caller, and refuses more than the limits. */
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

  /** What one request holds until its response has ended, or its connection. */
  hold(caller: string, response: ServerResponse): Held {
    const held = new Held(this, caller);
    response.once("finish", () => held.release()).once("close", () => held.release());
    return held;
  }

  /** Throws `rate_limited` or `overloaded` when so many more bytes would be too many. */
  require(caller: string, bytes: number): void {
    const headers = { "retry-after": String(RETRY_SECONDS) };
    if (this.of(caller) + bytes > this.limits.perCaller) {
      const detail = `Bodies and unread answers of this caller would hold more than ${this.limits.perCaller} bytes. Read the answers, or send fewer requests at once.`;
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

  /** The most that its caller may hold. */
  get most(): number {
    return this.#all.limits.perCaller;
  }

  /** Takes more bytes. Throws `rate_limited` or `overloaded` when they are too many. */
  demand(bytes: number): void {
    this.#all.require(this.#caller, bytes);
    this.take(bytes);
  }

  /** Takes bytes that are there already, such as an answer's. While there are too many, new requests are refused. */
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
