import { contextOf, type Engine } from "../engine.ts";
import type { Hash, Uuid } from "../model.ts";
import type { Clock } from "../ports.ts";
import type { L1Settler, Trade, TradeSide } from "../protocol/trade.ts";
import { RESEND, RETRY, Refusals, refusalNow, refusedInside, sentTogether } from "../refusals.ts";
import type { OrderRecord } from "../store/records.ts";
import * as fills from "./fills.ts";
import { messageOfOrder } from "./order-records.ts";

/** Most fills of one transaction. */
const MOST_TOGETHER = 10;
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
  /** Fills that were refused last time, by the taker's order. */
  readonly #refused: Refusals<Uuid>;
  /** Owners whose wallets refused in a transaction what they had signed. */
  readonly #quarantined: Refusals<string>;

  constructor(options: FillSenderOptions) {
    const { clock = () => performance.now() } = options;
    this.#options = options;
    this.#refused = new Refusals(clock);
    this.#quarantined = new Refusals(clock);
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
      if (found.state !== "waiting") this.#refused.forget(orderId);
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
    if (this.#refused.isHeld(taker.orderId)) return null;
    if ([maker, taker].some((order) => this.#quarantined.isHeld(order.maker))) return null;
    const sides = await Promise.all([this.#sideOf(maker), this.#sideOf(taker)]);
    const [makers, takers] = sides;
    // A reorganisation may have taken a batch back.
    if (!makers || !takers) return null;
    const trade = { maker: makers, taker: takers };
    const { l1 } = this.#options;
    const refusal = await refusalNow(() => l1.checkTrade(trade), l1);
    if (refusal === null) return { ...fill, trade };
    this.#refused.hold(taker.orderId, RETRY);
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

  /** Sends fills in one transaction, or in several when L1 reverts it. Returns how many. */
  async #relay(group: readonly Ready[], signal?: AbortSignal): Promise<number> {
    const context = contextOf(this.#options.engine);
    const send = (some: readonly Ready[]) => {
      const onSent = async (txHash: Hash) => {
        for (const { taker } of some)
          await fills.recordFillSubmitted(context, taker.orderId, txHash);
      };
      const trades = some.map(({ trade }) => trade);
      return this.#options.l1.settle(trades, { signal, onSent });
    };
    for await (const [{ maker, taker }, refusal] of sentTogether(group, send)) {
      // The engine hears of a settled one soon. Only a reorganisation makes it wait again.
      this.#refused.hold(taker.orderId, RESEND);
      if (refusal === null) continue;
      for (const owner of blamed([maker, taker], refusal)) this.#quarantined.hold(owner, RESEND);
      const told = refusedInside("trade", refusal);
      await fills.recordFillRefused(context, taker.orderId, told);
    }
    return group.length;
  }
}

/** The owners of the orders that a refusal names, so that nobody waits for another's wallet. */
function blamed(sides: readonly OrderRecord[], refusal: string): readonly string[] {
  const named = sides.filter(({ digest, vaultId }) =>
    [digest, `(${vaultId},`, `(${vaultId})`].some((name) => refusal.includes(name)),
  );
  return (named.length === 0 ? sides : named).map(({ maker }) => maker);
}
