import type { ServerResponse } from "node:http";
import { ServerError } from "../errors.ts";

/** Who holds memory, and pays: a key, a person or an address, and its tenant. */
export interface Caller {
  readonly name: string;
  /** The application; {@link PUBLIC} for all callers without a key. */
  readonly tenant: string;
}

/** The tenant of callers without a key. */
export const PUBLIC = "public";

/** Default of `MINTMARK_MEMORY_MIB`, in bytes. */
export const DEFAULT_MEMORY_BYTES = 512 * 1024 * 1024;
/** Connections that make no progress are closed after seconds, so a short wait is enough. */
const RETRY_SECONDS = 5;
/** With less than this share free, the server refuses nearly everybody. */
const LEAST_FREE = 1 / 16;

/**
 * Counts the bytes of bodies and unread responses. A tenant may hold as much as is still free, and a caller as much as
 * its tenant has left of one half. So something is always free for others, however many take all that they can.
 *
 * @example
 * const memory = new HeldBytes(256 * 1024 * 1024);
 * const app = await buildServer({ engine, memory });
 * console.log(memory.total, memory.isFull);
 */
export class HeldBytes {
  readonly limit: number;
  readonly #byCaller = new Map<string, number>();
  readonly #byTenant = new Map<string, number>();
  #total = 0;

  constructor(limit: number = DEFAULT_MEMORY_BYTES) {
    this.limit = limit;
  }

  get total(): number {
    return this.#total;
  }

  /** Most bytes that one caller can hold. */
  get mostPerCaller(): number {
    return this.limit / 4;
  }

  get isFull(): boolean {
    return this.limit - this.#total < this.limit * LEAST_FREE;
  }

  /** The bytes of one request, until its response or its connection ends. */
  hold(caller: Caller, response: ServerResponse): Held {
    const held = new Held(this, caller);
    response.once("finish", () => held.release()).once("close", () => held.release());
    return held;
  }

  /** Throws `rate_limited` or `overloaded` when `bytes` more would exceed the caller's or the tenant's share. */
  require({ name, tenant }: Caller, bytes: number): void {
    const ofCaller = (this.#byCaller.get(name) ?? 0) + bytes;
    const ofTenant = (this.#byTenant.get(tenant) ?? 0) + bytes;
    const half = this.limit / 2;
    if (ofTenant <= this.limit - this.#total - bytes && ofCaller <= half - ofTenant) return;
    const headers = { "retry-after": String(RETRY_SECONDS) };
    // Without the others, this one could have had it.
    if (ofCaller <= this.mostPerCaller && ofTenant <= half) throw new ServerError("overloaded", undefined, { headers });
    const detail = `Bodies and unread responses would take more than ${this.mostPerCaller} bytes of this caller, or ${half} of its application. Read the responses, or send fewer requests at once.`;
    throw new ServerError("rate_limited", detail, { headers });
  }

  change({ name, tenant }: Caller, bytes: number): void {
    add(this.#byCaller, name, bytes);
    add(this.#byTenant, tenant, bytes);
    this.#total += bytes;
  }
}

function add(counts: Map<string, number>, name: string, bytes: number): void {
  const now = (counts.get(name) ?? 0) + bytes;
  if (now === 0) counts.delete(name);
  else counts.set(name, now);
}

export class Held {
  readonly #all: HeldBytes;
  readonly #caller: Caller;
  #bytes = 0;
  #released = false;

  constructor(all: HeldBytes, caller: Caller) {
    this.#all = all;
    this.#caller = caller;
  }

  /** The most that its caller can hold. */
  get most(): number {
    return this.#all.mostPerCaller;
  }

  /** Takes more bytes. Throws `rate_limited` or `overloaded` beyond a share. */
  demand(bytes: number): void {
    this.#all.require(this.#caller, bytes);
    this.take(bytes);
  }

  /** Takes bytes that already exist, such as a response. Beyond a share, further requests are refused. */
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
