import { sharedRuns } from "../../at-once.ts";
import { pause } from "../../backoff.ts";
import { blockRanges, eventsUpTo, least, requireBlock } from "../../blocks.ts";
import { MintmarkError } from "../../errors.ts";
import type { SettlementPort } from "../../operator.ts";
import type { L1Event, Portal } from "../../ports.ts";
import { takeBackReorganised } from "../progress/reorganised.ts";

export interface FollowOptions {
  /** Block of the contract's deployment. */
  readonly fromBlock: bigint;
  /** How long a node may lag behind earlier reads before a shorter chain is believed, in ms; default 15 000. */
  readonly lagMs?: number;
}

type Watched = Pick<Portal, "settlement" | "blockNumber" | "finalizedBlockNumber" | "block" | "events">;

/** Pause between two questions to a node that lags. */
const LAG_POLL_MS = 500;

/** Brings an engine up to the chain of the settlement contract or of a mirror. One per engine and chain. */
export class Follower {
  readonly #engine: SettlementPort;
  readonly #portal: Watched;
  readonly #fromBlock: bigint;
  readonly #lagMs: number;
  readonly #follows = sharedRuns((signal) => this.#run(signal));
  /**
   * The events of blocks that were not final, to be compared with a second read once they are, because a node that lags
   * leaves logs out without an error. In memory: reads of an earlier process are not repeated.
   */
  #seen: L1Event[] = [];
  /** The first block without a second read; null before the first read. */
  #unconfirmed: bigint | null = null;

  constructor(engine: SettlementPort, portal: Watched, { fromBlock, lagMs = 15_000 }: FollowOptions) {
    this.#engine = engine;
    this.#portal = portal;
    this.#fromBlock = fromBlock;
    this.#lagMs = lagMs;
  }

  /**
   * Takes back what a reorganisation removed, applies commits and withdrawals (also those that owners made themselves),
   * then finality. Each range of blocks is one atomic step, so an interrupted run continues where it stopped. Blocks are
   * read again before they count as final. One run at a time. Callers during a run share the next one, because the
   * current run may miss what they wait for.
   *
   * @throws MintmarkError `l1_failed` when the chain cannot be asked, changes during the read, or answers differently
   * the second time: try again
   */
  follow(signal?: AbortSignal): Promise<void> {
    return this.#follows(signal);
  }

  async #run(signal?: AbortSignal): Promise<void> {
    const finalized = await this.#portal.finalizedBlockNumber();
    await this.#caughtUp(signal);
    const gone = await takeBackReorganised(this.#engine, this.#portal, this.#fromBlock);
    if (gone !== null) this.#forget(gone);
    const newest = await this.#portal.blockNumber();
    const { observed } = this.#recorded;
    const first = observed === null ? this.#fromBlock : observed + 1n;
    for (const [from, to] of blockRanges(first, newest)) {
      const { events, block } = await eventsUpTo(this.#portal, from, to);
      await this.#engine.operator.recordEvents(this.#chainId, events, to, { blockHash: block.hash });
      this.#forget(from);
      this.#unconfirmed ??= from;
      this.#seen.push(...events);
    }
    await this.#readAgain(finalized);
    await this.#recordFinal(finalized);
  }

  get #chainId(): bigint {
    return this.#portal.settlement.chainId;
  }

  get #recorded() {
    return this.#engine.operator.portal(this.#chainId);
  }

  /** Waits while the newest block is older than earlier reads. Then a shorter chain has replaced the old one. */
  async #caughtUp(signal?: AbortSignal): Promise<void> {
    const deadline = performance.now() + this.#lagMs;
    while ((await this.#portal.blockNumber()) < (this.#recorded.observed ?? 0n) && performance.now() < deadline)
      await pause(LAG_POLL_MS, signal);
  }

  /** Reads blocks that are final now again. Takes back what was read of them when the events differ. */
  async #readAgain(finalized: bigint): Promise<void> {
    const from = this.#unconfirmed;
    const to = least(finalized, this.#recorded.observed ?? -1n);
    if (from === null || from > to) return;
    const again = await this.#portal.events(from, to);
    const before = this.#seen.filter(({ blockNumber }) => blockNumber <= to);
    const differing = [...without(again, before), ...without(before, again)];
    const [first] = differing.map(({ blockNumber }) => blockNumber).sort((a, b) => (a < b ? -1 : 1));
    if (first !== undefined) {
      await this.#engine.operator.recordReorg(this.#chainId, first);
      this.#forget(first);
      throw new MintmarkError(
        "l1_failed",
        `the RPC's nodes disagree on the events of block ${first}; reading it again`,
      );
    }
    this.#seen = this.#seen.filter(({ blockNumber }) => blockNumber > to);
    this.#unconfirmed = to + 1n;
  }

  /** The hash is valid for the chain that was read only if the newest read block is still there. */
  async #recordFinal(block: bigint): Promise<void> {
    const { observed, finalized } = this.#recorded;
    if (observed === null || block <= (finalized ?? -1n)) return;
    const { number, hash } = await requireBlock(this.#portal, least(block, observed));
    for await (const newest of this.#engine.operator.checkpoints(this.#chainId)) {
      if ((await requireBlock(this.#portal, newest.number)).hash === newest.hash) break;
      throw new MintmarkError("l1_failed", `block ${newest.number} was replaced after it was read; try again`);
    }
    await this.#engine.operator.recordFinalized(this.#chainId, number, { blockHash: hash });
  }

  #forget(fromBlock: bigint): void {
    this.#seen = this.#seen.filter(({ blockNumber }) => blockNumber < fromBlock);
    if (this.#unconfirmed !== null && this.#unconfirmed > fromBlock) this.#unconfirmed = fromBlock;
  }
}

function without(events: readonly L1Event[], others: readonly L1Event[]): readonly L1Event[] {
  const nameOf = ({ blockNumber, logIndex, txHash, type }: L1Event) => `${blockNumber} ${logIndex} ${txHash} ${type}`;
  const known = new Set(others.map(nameOf));
  return events.filter((event) => !known.has(nameOf(event)));
}
