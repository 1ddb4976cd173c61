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
  /**
   * How long a node may lag behind earlier reads before a shorter chain is believed, in ms; default
   * 15 000.
   */
  readonly lagMs?: number;
}

type Watched = Pick<
  Portal,
  "settlement" | "blockNumber" | "finalizedBlockNumber" | "block" | "events"
>;

/** Pause between two questions to a node that lags. */
const LAG_POLL_MS = 500;

/** Brings an engine up to a chain. */
export type Follow = (signal?: AbortSignal) => Promise<void>;

/**
 * Follows the chain of the settlement contract or of a mirror. One per engine and chain.
 *
 * Takes back what a reorganisation removed, applies commits and withdrawals (also those that owners
 * made themselves), then finality. Each range of blocks is one atomic step, so an interrupted run
 * continues where it stopped. Blocks are read again before they count as final. One run at a time.
 * Callers during a run share the next one, because the current run may miss what they wait for.
 *
 * The function rejects with `l1_failed` when the chain cannot be asked, changes during the read, or
 * answers differently the second time: try again.
 */
export function followerOf(
  engine: SettlementPort,
  portal: Watched,
  { fromBlock, lagMs = 15_000 }: FollowOptions,
) {
  const { operator } = engine;
  const { chainId } = portal.settlement;
  const recorded = () => operator.portal(chainId);
  /**
   * The events of blocks that were not final, to be compared with a second read once they are,
   * because a node that lags leaves logs out without an error. In memory: reads of an earlier
   * process are not repeated.
   */
  let seen: L1Event[] = [];
  /** The first block without a second read; null before the first read. */
  let unconfirmed: bigint | null = null;
  const forget = (from: bigint): void => {
    seen = seen.filter(({ blockNumber }) => blockNumber < from);
    if (unconfirmed !== null && unconfirmed > from) unconfirmed = from;
  };
  /**
   * Waits while the newest block is older than earlier reads. Then a shorter chain has replaced the
   * old one.
   */
  const caughtUp = async (signal?: AbortSignal): Promise<void> => {
    const deadline = performance.now() + lagMs;
    while (
      (await portal.blockNumber()) < (recorded().observed ?? 0n) &&
      performance.now() < deadline
    )
      await pause(LAG_POLL_MS, signal);
  };
  /**
   * Reads blocks that are final now again. Takes back what was read of them when the events differ.
   */
  const readAgain = async (finalized: bigint): Promise<void> => {
    const from = unconfirmed;
    const to = least(finalized, recorded().observed ?? -1n);
    if (from === null || from > to) return;
    const again = await portal.events(from, to);
    const before = seen.filter(({ blockNumber }) => blockNumber <= to);
    const differing = [...without(again, before), ...without(before, again)];
    const [first] = differing
      .map(({ blockNumber }) => blockNumber)
      .sort((a, b) => (a < b ? -1 : 1));
    if (first !== undefined) {
      await operator.recordReorg(chainId, first);
      forget(first);
      const disagreement = `the RPC's nodes disagree on the events of block ${first}; reading it again`;
      throw new MintmarkError("l1_failed", disagreement);
    }
    seen = seen.filter(({ blockNumber }) => blockNumber > to);
    unconfirmed = to + 1n;
  };
  /** The hash is valid for the chain that was read only if the newest read block is still there. */
  const recordFinal = async (block: bigint): Promise<void> => {
    const { observed, finalized } = recorded();
    if (observed === null || block <= (finalized ?? -1n)) return;
    const { number, hash } = await requireBlock(portal, least(block, observed));
    for await (const newest of operator.checkpoints(chainId)) {
      if ((await requireBlock(portal, newest.number)).hash === newest.hash) break;
      throw new MintmarkError(
        "l1_failed",
        `block ${newest.number} was replaced after it was read; try again`,
      );
    }
    await operator.recordFinalized(chainId, number, { blockHash: hash });
  };
  return sharedRuns(async (signal) => {
    const finalized = await portal.finalizedBlockNumber();
    await caughtUp(signal);
    const gone = await takeBackReorganised(engine, portal, fromBlock);
    if (gone !== null) forget(gone);
    const newest = await portal.blockNumber();
    const { observed } = recorded();
    const first = observed === null ? fromBlock : observed + 1n;
    for (const [from, to] of blockRanges(first, newest)) {
      const { events, block } = await eventsUpTo(portal, from, to);
      await operator.recordEvents(chainId, events, to, { blockHash: block.hash });
      forget(from);
      unconfirmed ??= from;
      seen.push(...events);
    }
    await readAgain(finalized);
    await recordFinal(finalized);
  });
}

function without(events: readonly L1Event[], others: readonly L1Event[]): readonly L1Event[] {
  const nameOf = ({ blockNumber, logIndex, txHash, type }: L1Event) =>
    `${blockNumber} ${logIndex} ${txHash} ${type}`;
  const known = new Set(others.map(nameOf));
  return events.filter((event) => !known.has(nameOf(event)));
}
