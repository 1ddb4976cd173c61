import type { SettlementPort } from "../../operator.ts";
import type { Clock, Portal } from "../../ports.ts";
import type { VaultPlace } from "../../protocol/vault.ts";
import { PendingQueue } from "./pending-queue.ts";
import { SecondRead } from "./second-read.ts";
import { applyL1Events, type WatchOptions } from "./watch.ts";
import { WithdrawalSender } from "./withdrawal-sender.ts";

export interface FollowOptions {
  /** Block of the contract's deployment. */
  readonly fromBlock: bigint;
  /** How long a node may lag behind earlier reads before a shorter chain is believed, in ms; default 15 000. */
  readonly lagMs?: number;
  /** Monotonic milliseconds for retries; default the process's own. */
  readonly clock?: Clock;
}

/** The given clock, or the process's own. */
export function steadyClock({ clock = () => performance.now() }: Pick<FollowOptions, "clock">): Clock {
  return clock;
}

/**
 * Withdrawals on one chain. The contract's events reach the engine, and the engine's withdrawals reach the contract.
 * The same for the settlement contract and for mirrors. One per engine and chain.
 */
export class Exits {
  readonly #portal: Portal;
  readonly #watching: WatchOptions;
  readonly #queue: PendingQueue;
  readonly #sender: WithdrawalSender;
  #last: Promise<void> = Promise.resolve();
  #next: Promise<void> | null = null;

  constructor(engine: SettlementPort, portal: Portal, options: FollowOptions) {
    const { fromBlock, lagMs = 15_000 } = options;
    this.#portal = portal;
    this.#queue = new PendingQueue(engine, portal.settlement.chainId);
    this.#watching = { engine, portal, fromBlock, lagMs, secondRead: new SecondRead() };
    this.#sender = new WithdrawalSender(engine, portal, this.#queue, steadyClock(options));
  }

  /**
   * Brings the engine up to the chain; see {@link applyL1Events}. One run at a time. Callers during a run share the
   * next one, because the current run may miss what they wait for.
   */
  follow(signal?: AbortSignal): Promise<void> {
    if (this.#next !== null) return this.#next;
    const next = this.#last.then(() => {
      this.#next = null;
      return applyL1Events({ ...this.#watching, ...(signal && { signal }) });
    });
    this.#next = next;
    this.#last = next.catch(() => {});
    return next;
  }

  /** Batches that withdrawals wait for and the contract does not know yet, each once. */
  awaitedBatches(): Promise<readonly VaultPlace[]> {
    return this.#queue.awaitedBatches();
  }

  /** Sends a bounded number of withdrawals that would succeed now, and follows the results. Returns how many. */
  async send(signal?: AbortSignal): Promise<number> {
    // It may have paid some of them.
    if (await this.#portal.earlierMined(signal)) await this.follow(signal);
    const sent = await this.#sender.sendReady(signal);
    if (sent > 0) await this.follow(signal);
    return sent;
  }
}
