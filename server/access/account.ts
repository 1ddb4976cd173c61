import type { FastifyReply } from "fastify";
import type { Held, HeldBytes } from "./held-bytes.ts";
import type { TokenBuckets } from "./rate-limit.ts";

/** Bytes of a JSON answer that one unit of rate pays for: of a key, and of an address. */
export const KEY_UNIT = 4 * 1024;
export const PUBLIC_UNIT = 64 * 1024;
/** Smaller bodies cost nothing by their size. */
const FREE_BODY = 16 * 1024;
/** Of bodies. A mint entry with its white space has less, and so costs its one unit and no more. */
const BODY_UNIT = 1024;
/** Of binary answers, which cost little to make. */
const BINARY_UNIT = 1024 * 1024;
/** Bytes that a request holds at least while it is under way: its objects, and a page of a list as objects and text. */
const LEAST_HELD = 64 * 1024;

/** What one request costs its caller: units of rate, and the memory for its body and answer. */
export class Account {
  readonly caller: string;
  readonly #meter: TokenBuckets;
  readonly #unit: number;
  readonly #reply: FastifyReply;
  readonly #held: Held;
  #paid = 0;
  #expected = 0;

  /** Takes the first unit. Throws `rate_limited`, or `overloaded` when no more may be held. */
  constructor(caller: string, meter: TokenBuckets, unit: number, memory: HeldBytes, reply: FastifyReply) {
    this.caller = caller;
    this.#meter = meter;
    this.#unit = unit;
    this.#reply = reply;
    this.pay(1);
    this.#held = memory.hold(caller, reply.raw);
    this.#held.demand(LEAST_HELD);
  }

  /** Has so many units paid in all. No request costs more than a bucket holds: it could never be paid. */
  pay(units: number): void {
    const more = Math.min(units, this.#meter.quota.units) - this.#paid;
    if (more <= 0) return;
    this.#meter.spend(this.caller, more, this.#reply);
    this.#paid += more;
  }

  /** A piece of the body has come. */
  receive(bytes: number): void {
    this.#held.demand(bytes);
  }

  /** The body is whole, and not yet read. */
  received(bytes: number): void {
    if (bytes > FREE_BODY) this.pay(Math.ceil(bytes / BODY_UNIT));
  }

  /** Announces an answer of about so many bytes. It counts for at most half of the caller's limit, so it fits. */
  expect(bytes: number): void {
    const most = this.#held.most / 2;
    const more = Math.min(this.#expected + bytes, most) - this.#expected;
    this.#held.demand(more);
    this.#expected += more;
  }

  /** The answer is made; may be called twice. It may go over the limit: a change that was made is never refused. */
  answered(bytes: number, binary: boolean): void {
    const units = Math.min(Math.ceil(bytes / (binary ? BINARY_UNIT : this.#unit)), this.#meter.quota.units);
    if (units > this.#paid) this.#meter.owe(this.caller, units - this.#paid, this.#reply);
    this.#paid = Math.max(this.#paid, units);
    this.#held.take(bytes - this.#expected);
    this.#expected = bytes;
  }
}
