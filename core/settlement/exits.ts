import type { Engine } from "../engine.ts";
import type { Clock, Portal } from "../ports.ts";
import { Checkpoints } from "./checkpoints.ts";
import { SecondLook } from "./second-look.ts";
import { applyL1Events, type WatchOptions } from "./watch.ts";
import { WithdrawalSender } from "./withdraw.ts";

/** How a chain is followed. */
export interface FollowOptions {
  /** Block of the contract's deployment. */
  readonly fromBlock: bigint;
  /** Open them over a store of their own, so that a reorganisation while the process is down is seen; default in memory. */
  readonly checkpoints?: Checkpoints;
  /** Milliseconds that a node may be behind what was read before, until a shorter chain is believed; default 15 000. */
  readonly lagMs?: number;
  readonly clock?: Clock;
}

/**
 * The exit on one chain: what its contract tells reaches the engine, and what owners ask of the engine reaches the contract. The same for
 * the settlement contract and for mirrors. One per engine and chain.
 */
export class Exits {
  readonly #watching: WatchOptions;
  readonly #sender: WithdrawalSender;

  constructor(engine: Engine, portal: Portal, options: FollowOptions) {
    const { fromBlock, checkpoints = new Checkpoints(), lagMs = 15_000, clock = Date.now } = options;
    this.#watching = { engine, portal, checkpoints, fromBlock, lagMs, secondLook: new SecondLook() };
    this.#sender = new WithdrawalSender(engine, portal, clock);
  }

  /** Brings the engine to what the chain is now; see {@link applyL1Events}. */
  follow(signal?: AbortSignal): Promise<void> {
    return applyL1Events({ ...this.#watching, ...(signal && { signal }) });
  }

  /** Sends the withdrawals that would succeed now, and follows what comes of them. Returns how many. */
  async send(signal?: AbortSignal): Promise<number> {
    const sent = await this.#sender.sendReady(signal);
    if (sent > 0) await this.follow(signal);
    return sent;
  }
}
