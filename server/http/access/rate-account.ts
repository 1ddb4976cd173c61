import type { FastifyReply, FastifyRequest } from "fastify";
import type { ProofOptions, SignedOptions } from "../../../core/index.ts";
import { later } from "../errors.ts";
import { add, type TokenBuckets } from "./rate-limit.ts";

/** The caller who holds memory, and pays: a key, a person or an address, and its tenant. */
export interface Caller {
  readonly name: string;
  /** The application; {@link PUBLIC} for all callers without a key. */
  readonly tenant: string;
}

/** The tenant of callers without a key. */
export const PUBLIC = "public";

/** Default of `MINTMARK_MEMORY_MIB`, in bytes. */
export const DEFAULT_MEMORY_BYTES = 512 * 1024 * 1024;
interface Prices {
  /** Bytes of a JSON response for one unit of rate. */
  readonly unitBytes: number;
  /** Units of one proof by KZG, which takes a core for 50 to 100 ms. */
  readonly kzgProof: number;
  /**
   * Units of one transfer in a proof, for which its whole batch is decoded: up to 15 ms of a core.
   */
  readonly hop: number;
  /**
   * Units of what a node is asked for: the operator buys its answers, and has only so many a day.
   */
  readonly nodeQuestion: number;
}

export const KEY_PRICES: Prices = {
  unitBytes: 4 * 1024,
  kzgProof: 1_000,
  hop: 200,
  nodeQuestion: 500,
};
export const PUBLIC_PRICES: Prices = {
  unitBytes: 64 * 1024,
  kzgProof: 5,
  hop: 1,
  nodeQuestion: 5,
};
/** Smaller bodies cost nothing for their size. */
const FREE_BODY = 16 * 1024;
/**
 * Bytes of a body per unit. A mint entry with white space has fewer, so it costs only its own unit.
 */
const BODY_UNIT = 1024;
/**
 * Each piece of a body costs as much as so many bytes: it takes a core for microseconds, even if it
 * is one byte.
 */
const PIECE_BYTES = 16;
/** Bytes of a binary response per unit; these are cheap to make. */
const BINARY_UNIT = 1024 * 1024;
/** Rows of a drop per unit: reading them takes as long as a small request. */
const UNIT_ROWS = 4;
/** Bytes of a request's own objects, while its body arrives and its response waits. */
const REQUEST_BYTES = 8 * 1024;
/** Bytes of a request in progress besides them: a page of a list as objects and text. */
const WORK_BYTES = 56 * 1024;
/** Bytes of a mint's response for each entry. */
const ANSWER_BYTES = 800;

/** The cost of one request for its caller: units of rate, and memory for body and response. */
export class Account {
  readonly caller: Caller;
  readonly #meter: TokenBuckets;
  readonly #prices: Prices;
  readonly #reply: FastifyReply;
  readonly #memory: HeldBytes;
  #held = 0;
  #body = 0;
  #paid = 0;
  #expected = 0;
  #questions = 0;
  #isShared = false;
  /** Whether the response or the connection has ended. */
  #isReleased = false;

  /**
   * Takes the first unit. Throws `rate_limited`, or `overloaded` when the memory limit is reached.
   */
  constructor(
    caller: Caller,
    meter: TokenBuckets,
    prices: Prices,
    memory: HeldBytes,
    reply: FastifyReply,
  ) {
    this.caller = caller;
    this.#meter = meter;
    this.#prices = prices;
    this.#reply = reply;
    this.#memory = memory;
    this.pay(1);
    this.#reserve(REQUEST_BYTES);
    const release = () => {
      this.#hold(-this.#held);
      this.#isReleased = true;
    };
    reply.raw.once("finish", release).once("close", release);
  }

  /**
   * Raises the request's total payment to `units`. It never exceeds a full bucket, which could not
   * pay more.
   */
  pay(units: number): void {
    const more = Math.min(units, this.#meter.quota.units) - this.#paid;
    if (more <= 0) return;
    this.#meter.spend(this.caller.name, more, this.#reply, this.caller.tenant);
    this.#paid += more;
  }

  /** Raises the payment for work that is done: on credit where the caller has too few units. */
  owe(units: number): void {
    const more = Math.min(units, this.#meter.quota.units) - this.#paid;
    if (more <= 0) return;
    this.#meter.owe(this.caller.name, more, this.#reply, this.caller.tenant);
    this.#paid += more;
  }

  /** Called with the rows of a drop that were read. */
  rows(count: number): void {
    this.owe(Math.ceil(count / UNIT_ROWS));
  }

  /** Called before the engine makes proofs by KZG. */
  prove(proofs: number): void {
    this.pay(proofs * this.#prices.kzgProof);
  }

  /**
   * Called before each question to a node: for a wallet contract's answer, for an exit kit, or
   * about a new token.
   */
  askNode(): void {
    this.#questions++;
    this.pay(this.#questions * this.#prices.nodeQuestion);
  }

  /** Called with the transfers of each vault that was proven. */
  proven(hops: number): void {
    this.pay(1 + hops * this.#prices.hop);
  }

  /** Called with the size of each piece of the body, and with the memory that it takes. */
  receive(bytes: number, held: number): void {
    this.#reserve(held);
    this.#body += bytes + PIECE_BYTES;
    if (this.#body > FREE_BODY) this.pay(Math.ceil(this.#body / BODY_UNIT));
  }

  /** Called when the body is read and the work begins, for so many entries of a mint. */
  work(entries: number): void {
    this.pay(entries);
    this.expect(WORK_BYTES + entries * ANSWER_BYTES);
  }

  /**
   * Called when the response is in memory for all callers at once, so that this one holds none of
   * it.
   */
  share(): void {
    this.#isShared = true;
  }

  /** Reserves memory for a response of about this size, but at most half of the caller's limit. */
  expect(bytes: number): void {
    const more = Math.min(bytes, this.#memory.mostPerCaller / 2 - this.#expected);
    this.#reserve(more);
    this.#expected += more;
  }

  /** Called once the response is made; repeats are harmless. */
  answered(bytes: number, binary: boolean): void {
    this.owe(Math.ceil(bytes / (binary ? BINARY_UNIT : this.#prices.unitBytes)));
    const held = this.#isShared ? 0 : bytes;
    this.#hold(held - this.#expected);
    this.#expected = held;
  }

  /** Throws `rate_limited` or `overloaded` beyond a share. */
  #reserve(bytes: number): void {
    if (this.#isReleased) return;
    this.#memory.take(this.caller, bytes);
    this.#held += bytes;
  }

  /** Holds more or less, without a check. */
  #hold(bytes: number): void {
    if (this.#isReleased) return;
    this.#held += bytes;
    this.#memory.change(this.caller, bytes);
  }
}

/** Connections that make no progress are closed after seconds, so a short wait is enough. */
const RETRY_SECONDS = 5;
/** The server refuses nearly everybody with less than this share free. */
const LEAST_FREE = 1 / 16;

/**
 * Counts the bytes of bodies and unread responses. A tenant may hold as much as is still free, and
 * a caller as much as its tenant has left of one half. So something is always free for others,
 * however many take all that they can.
 *
 * @example
 * const memory = new HeldBytes(256 * 1024 * 1024);
 * const app = await buildServer({ engine, memory });
 * console.log(memory.total, memory.isFull);
 */
export class HeldBytes {
  readonly limit: number;
  /** Most bytes that one caller can hold. */
  readonly mostPerCaller: number;
  readonly #byCaller = new Map<string, number>();
  readonly #byTenant = new Map<string, number>();
  #total = 0;

  constructor(limit: number = DEFAULT_MEMORY_BYTES) {
    this.limit = limit;
    this.mostPerCaller = limit / 4;
  }

  get total(): number {
    return this.#total;
  }

  get isFull(): boolean {
    return this.limit - this.#total < this.limit * LEAST_FREE;
  }

  /**
   * Throws `rate_limited` or `overloaded` when `bytes` more would exceed the caller's or the
   * tenant's share.
   */
  take(caller: Caller, bytes: number): void {
    const { name, tenant } = caller;
    const ofCaller = (this.#byCaller.get(name) ?? 0) + bytes;
    const ofTenant = (this.#byTenant.get(tenant) ?? 0) + bytes;
    const half = this.limit / 2;
    if (ofTenant <= this.limit - this.#total - bytes && ofCaller <= half - ofTenant) {
      this.change(caller, bytes);
      return;
    }
    // This caller could have had the memory without the others.
    if (ofCaller <= this.mostPerCaller && ofTenant <= half)
      throw later("overloaded", RETRY_SECONDS);
    const detail = `Bodies and unread responses would take more than ${this.mostPerCaller} bytes of this caller, or ${half} of its application. Read the responses, or send fewer requests at once.`;
    throw later("rate_limited", RETRY_SECONDS, detail);
  }

  change({ name, tenant }: Caller, bytes: number): void {
    add(this.#byCaller, name, bytes);
    add(this.#byTenant, tenant, bytes);
    this.#total += bytes;
  }
}

/** Proofs by KZG, and questions to wallet contracts, cost the caller of the request. */
export function paidBy({ account }: FastifyRequest): ProofOptions & SignedOptions {
  return {
    onKzgProofs: (proofs) => account?.prove(proofs),
    onWalletCheck: () => account?.askNode(),
  };
}
