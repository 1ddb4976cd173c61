import type { FastifyReply } from "fastify";
import type { Caller, Held, HeldBytes } from "./held-bytes.ts";
import type { TokenBuckets } from "./rate-limit.ts";

/** What a caller pays. */
interface Prices {
  /** Bytes of a JSON response for one unit of rate. */
  readonly unitBytes: number;
  /** Units of one proof by KZG, which takes a core for 50 to 100 ms. */
  readonly kzgProof: number;
  /** Units of one transfer in a proof, for which its whole batch is decoded: up to 15 ms of a core. */
  readonly hop: number;
}

export const KEY_PRICES: Prices = { unitBytes: 4 * 1024, kzgProof: 1_000, hop: 200 };
export const PUBLIC_PRICES: Prices = { unitBytes: 64 * 1024, kzgProof: 5, hop: 1 };
/** Smaller bodies cost nothing for their size. */
const FREE_BODY = 16 * 1024;
/** Bytes of a body per unit. A mint entry with white space has fewer, so it costs only its own unit. */
const BODY_UNIT = 1024;
/** Bytes of a binary response per unit; these are cheap to make. */
const BINARY_UNIT = 1024 * 1024;
/** Bytes of a request's own objects, while its body arrives and its response waits. */
const REQUEST_BYTES = 8 * 1024;
/** Bytes of a request in progress besides them: a page of a list as objects and text. */
const WORK_BYTES = 56 * 1024;

/** The cost of one request for its caller: units of rate, and memory for body and response. */
export class Account {
  readonly caller: Caller;
  readonly #meter: TokenBuckets;
  readonly #prices: Prices;
  readonly #reply: FastifyReply;
  readonly #held: Held;
  #paid = 0;
  #expected = 0;
  #isShared = false;

  /** Takes the first unit. Throws `rate_limited`, or `overloaded` when the memory limit is reached. */
  constructor(caller: Caller, meter: TokenBuckets, prices: Prices, memory: HeldBytes, reply: FastifyReply) {
    this.caller = caller;
    this.#meter = meter;
    this.#prices = prices;
    this.#reply = reply;
    this.pay(1);
    this.#held = memory.hold(caller, reply.raw);
    this.#held.demand(REQUEST_BYTES);
  }

  /** Raises the request's total payment to `units`. It never exceeds a full bucket, which could not pay more. */
  pay(units: number): void {
    const more = Math.min(units, this.#meter.quota.units) - this.#paid;
    if (more <= 0) return;
    this.#meter.spend(this.caller.name, more, this.#reply, this.caller.tenant);
    this.#paid += more;
  }

  /** Called before the engine makes proofs by KZG. */
  prove(proofs: number): void {
    this.pay(proofs * this.#prices.kzgProof);
  }

  /** Called with the transfers of each vault that was proven. */
  proven(hops: number): void {
    this.pay(1 + hops * this.#prices.hop);
  }

  /** Called with the size of each piece of the body. */
  receive(bytes: number): void {
    this.#held.demand(bytes);
  }

  /** Called when the body is complete, before reading it. */
  received(bytes: number): void {
    if (bytes > FREE_BODY) this.pay(Math.ceil(bytes / BODY_UNIT));
  }

  /** Called when the body is read and the work begins. */
  work(): void {
    this.expect(WORK_BYTES);
  }

  /** Called when the response is in memory for all callers at once, so that this one holds none of it. */
  share(): void {
    this.#isShared = true;
  }

  /** Reserves memory for a response of about this size, but at most half of the caller's limit. */
  expect(bytes: number): void {
    const most = this.#held.most / 2;
    const more = Math.min(this.#expected + bytes, most) - this.#expected;
    this.#held.demand(more);
    this.#expected += more;
  }

  /**
   * Called once the response is made; repeats are harmless. Takes units on credit if needed, because the work is done.
   */
  answered(bytes: number, binary: boolean): void {
    const units = Math.min(Math.ceil(bytes / (binary ? BINARY_UNIT : this.#prices.unitBytes)), this.#meter.quota.units);
    if (units > this.#paid) this.#meter.owe(this.caller.name, units - this.#paid, this.#reply, this.caller.tenant);
    this.#paid = Math.max(this.#paid, units);
    const held = this.#isShared ? 0 : bytes;
    this.#held.take(held - this.#expected);
    this.#expected = held;
  }
}
