import { type Backoff, backoffDelay } from "../backoff.ts";
import { contextOf, type Engine } from "../engine.ts";
import { messageOf } from "../errors.ts";
import type { Hash, Uuid } from "../model.ts";
import type { Clock } from "../ports.ts";
import type { L1Settler, Trade, TradeSide } from "../protocol/trade.ts";
import type { OrderRecord } from "../store/records.ts";
import * as fills from "./fills.ts";
import { messageOfOrder } from "./order-records.ts";

/** Most fills of one transaction. */
const MOST_TOGETHER = 10;
/** Retry of a fill that L1 would refuse. */
const RETRY: Backoff = { firstMs: 5_000, maxMs: 600_000 };
/**
 * Retry of a fill that L1 refused in a transaction. That costs gas, so no wallet may say yes when
 * it is tried and no on L1 for long.
 */
const RESEND: Backoff = { firstMs: 600_000, maxMs: 86_400_000 };
/** Most characters of a node's message. */
const MOST_TEXT = 1_000;

interface Held {
  readonly times: number;
  /** The time of the clock before which nothing is tried. */
  readonly notBefore: number;
}

/** A fill with everything that the contract needs. */
interface Ready extends fills.PendingFill {
  readonly trade: Trade;
}

/** The function of the settlement contract that settles trades, for one account. */
export interface L1Trader extends L1Settler {
  /** The newest block's number. */
  blockNumber(): Promise<bigint>;
}

/** Options of {@link FillSender}. */
export interface FillSenderOptions {
  readonly engine: Engine;
  readonly l1: L1Trader;
  /** Monotonic milliseconds; default the process's own. */
  readonly clock?: Clock;
}

/**
 * Brings the fills of an engine's orders to L1, many in one transaction. Tries each one first, so
 * that one that would fail costs nobody gas. A loop beside the settler's, which tells the engine
 * what L1 has settled. One per engine.
 *
 * @example
 * const sender = new FillSender({ engine, l1 });
 * const sent = await sender.send(signal);
 */
export class FillSender {
  readonly #options: FillSenderOptions;
  readonly #clock: Clock;
  /** Fills that were refused last time, by the taker's order. */
  readonly #refused = new Map<Uuid, Held>();
  /** Owners whose wallets refused in a transaction what they had signed. */
  readonly #quarantined = new Map<string, Held>();

  constructor(options: FillSenderOptions) {
    this.#options = options;
    this.#clock = options.clock ?? (() => performance.now());
  }

  /** Ends what L1 has decided, and sends what it would settle now. Returns how many were sent. */
  async send(signal?: AbortSignal): Promise<number> {
    const { engine } = this.#options;
    const context = contextOf(engine);
    let group: Ready[] = [];
    let sent = 0;
    for (const fill of await fills.pendingFills(context.ledger)) {
      signal?.throwIfAborted();
      const { orderId } = fill.taker;
      const found = await fills.fillState(context.ledger, fill);
      if (found.state === "settled") await fills.recordFillSettled(context, orderId);
      if (found.state === "over") await fills.recordFillFailed(context, orderId, found.failure);
      if (found.state !== "waiting") this.#refused.delete(orderId);
      else {
        const ready = await this.#readyOf(fill);
        if (ready !== null) group.push(ready);
      }
      if (group.length < MOST_TOGETHER) continue;
      sent += await this.#relay(group, signal);
      group = [];
    }
    return group.length === 0 ? sent : sent + (await this.#relay(group, signal));
  }

  /** The fill if L1 would settle it now; else null, and the reason is on record. */
  async #readyOf(fill: fills.PendingFill): Promise<Ready | null> {
    const { maker, taker } = fill;
    const held = [
      this.#refused.get(taker.orderId),
      this.#quarantined.get(maker.maker),
      this.#quarantined.get(taker.maker),
    ];
    if (held.some((one) => one !== undefined && one.notBefore > this.#clock())) return null;
    const sides = await Promise.all([this.#sideOf(maker), this.#sideOf(taker)]);
    const [makers, takers] = sides;
    // A reorganisation may have taken a batch back.
    if (!makers || !takers) return null;
    const trade = { maker: makers, taker: takers };
    const refusal = await this.#refusalOf(trade);
    if (refusal === null) return { ...fill, trade };
    this.#hold(this.#refused, taker.orderId, RETRY);
    await fills.recordFillRefused(contextOf(this.#options.engine), taker.orderId, refusal);
    return null;
  }

  async #sideOf(order: OrderRecord): Promise<TradeSide | null> {
    const { engine } = this.#options;
    const { ledger } = contextOf(engine);
    const { header, ...proof } = await engine.proofs.exit(order.vaultId);
    const { quantum } = ledger.tenants.assetAt(order.give.assetIndex);
    const { signature } = order;
    return header && { ...proof, header, order: messageOfOrder(ledger, order), signature, quantum };
  }

  /** Rejects only when L1 cannot be asked anything. */
  async #refusalOf(trade: Trade): Promise<string | null> {
    const { l1 } = this.#options;
    try {
      return await l1.checkTrade(trade);
    } catch (error) {
      await l1.blockNumber();
      return `It could not be tried: ${messageOf(error)}`.slice(0, MOST_TEXT);
    }
  }

  /**
   * Sends fills in one transaction. When L1 reverts the whole, it sends each half by itself, so that
   * a fill that causes it waits alone.
   */
  async #relay(group: readonly Ready[], signal?: AbortSignal): Promise<number> {
    const context = contextOf(this.#options.engine);
    const onSent = async (txHash: Hash) => {
      for (const { taker } of group)
        await fills.recordFillSubmitted(context, taker.orderId, txHash);
    };
    const trades = group.map(({ trade }) => trade);
    const { refusals, txHash } = await this.#options.l1.settle(trades, { signal, onSent });
    if (refusals === null && group.length > 1) {
      const half = Math.ceil(group.length / 2);
      return (
        (await this.#relay(group.slice(0, half), signal)) +
        (await this.#relay(group.slice(half), signal))
      );
    }
    for (const [i, { maker, taker }] of group.entries()) {
      const refusal = refusals === null ? `transaction ${txHash} reverted` : refusals[i];
      if (refusal == null) {
        // The engine hears of it soon. Only a reorganisation makes it wait again.
        this.#hold(this.#refused, taker.orderId, RESEND);
        continue;
      }
      for (const owner of blamed([maker, taker], refusal))
        this.#hold(this.#quarantined, owner, RESEND);
      this.#hold(this.#refused, taker.orderId, RESEND);
      const failure = `L1 took the transaction but refused this trade in it: ${refusal}`;
      const told = failure.slice(0, MOST_TEXT);
      await fills.recordFillRefused(context, taker.orderId, told);
    }
    return group.length;
  }

  #hold<K>(held: Map<K, Held>, key: K, backoff: Backoff): void {
    const times = (held.get(key)?.times ?? 0) + 1;
    held.set(key, { times, notBefore: this.#clock() + backoffDelay(backoff, times) });
  }
}

/** The owners of the orders that a refusal names, so that nobody waits for another's wallet. */
function blamed(sides: readonly OrderRecord[], refusal: string): readonly string[] {
  const named = sides.filter(({ digest, vaultId }) =>
    [digest, `(${vaultId},`, `(${vaultId})`].some((name) => refusal.includes(name)),
  );
  return (named.length === 0 ? sides : named).map(({ maker }) => maker);
}
