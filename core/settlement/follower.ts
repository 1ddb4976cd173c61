import { sharedRuns } from "../at-once.ts";
import { pause } from "../backoff.ts";
import { blockRanges, eventsUpTo, least, requireBlock, SECOND_LOOK_MS } from "../blocks.ts";
import { MintmarkError } from "../errors.ts";
import type { SettlementPort } from "../operator.ts";
import type { Portal } from "../ports.ts";
import { takeBackReorganised } from "./reorganised.ts";

export { SECOND_LOOK_MS };

export interface FollowerOptions {
  /** Block of the contract's deployment. */
  readonly fromBlock: bigint;
  /**
   * How long a node may lag behind earlier reads before a shorter chain is believed, in ms; default
   * 15 000.
   */
  readonly lagMs?: number;
  /** Least time between the two reads of a block that make it final, in ms; default 15 000. */
  readonly rereadMs?: number;
  /** Least time between two looks at what cannot be undone, in ms; default 15 000. */
  readonly secondLookMs?: number;
}

/** The part of a portal that is followed. */
export type Watched = Pick<
  Portal,
  "settlement" | "blockNumber" | "finalizedBlockNumber" | "block" | "events"
>;

/** Pause between two questions to a node that lags. */
const LAG_POLL_MS = 500;

/** Keeps an engine up to date with a chain. */
export interface Follower {
  /** Brings the engine up to the chain. */
  follow(signal?: AbortSignal): Promise<void>;
  /**
   * Reads the observed blocks from this one on again, and adds the events that the node left out
   * before. Returns their number.
   */
  readAgain(from: bigint, signal?: AbortSignal): Promise<number>;
}

/**
 * Follows the chain of the settlement contract or of a mirror. One per engine and chain.
 *
 * Takes back what a reorganisation removed, applies commits and withdrawals (also those that owners
 * made themselves), then finality. Each range of blocks is one atomic step, so an interrupted run
 * continues where it stopped. Blocks are read again before they count as final: events that were
 * left out are added, and those that are left out now stay. What L1 makes by itself counts only
 * then. One run at a time. Callers during a run share the next one, because the current run may
 * miss what they wait for.
 *
 * Rejects with `l1_failed` when the chain cannot be asked, changes during the read, or leaves out
 * what it told of before: try again.
 */
export function followerOf(
  engine: SettlementPort,
  portal: Watched,
  { fromBlock, lagMs = 15_000, rereadMs = 15_000, secondLookMs = SECOND_LOOK_MS }: FollowerOptions,
): Follower {
  const { operator } = engine;
  const { chainId } = portal.settlement;
  const recorded = () => operator.portal(chainId);
  /**
   * Blocks up to `read.block` were read before `read.at`, those up to `again` long enough ago, such
   * as by an earlier process.
   */
  let read = { block: recorded().observed ?? -1n, at: performance.now() };
  let again = read.block;
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
  /** The number of events that it added; null when earlier ones are missing. */
  const recordRange = async (
    from: bigint,
    to: bigint,
    finalized?: bigint,
  ): Promise<number | null> => {
    const { events, block } = await eventsUpTo(portal, from, to);
    const how = { blockHash: block.hash, fromBlock: from, finalized };
    return operator.recordEvents(chainId, events, to, how);
  };
  /** Adds what was left out of these blocks. Takes nothing back. Returns the number of events. */
  const readAgain = async (first: bigint, last: bigint, signal?: AbortSignal): Promise<number> => {
    let added = 0;
    for (const [from, to] of blockRanges(first, last)) {
      signal?.throwIfAborted();
      added += (await recordRange(from, to)) ?? refuseGap(from);
    }
    return added;
  };
  const firstAfterFinal = (): bigint => {
    const { finalized } = recorded();
    return finalized === null ? fromBlock : finalized + 1n;
  };
  /** When earlier events are missing, they are read again: first those since the final blocks. */
  const readNew = async (from: bigint, to: bigint, signal?: AbortSignal): Promise<void> => {
    for (const since of [firstAfterFinal(), fromBlock]) {
      if ((await recordRange(from, to)) !== null) return;
      await readAgain(since, from - 1n, signal);
    }
    if ((await recordRange(from, to)) === null) refuseGap(from);
  };
  /** Reads blocks that are final once more, because a node can leave logs out without an error. */
  const confirm = async (finalized: bigint, signal?: AbortSignal): Promise<bigint> => {
    if (performance.now() - read.at >= rereadMs) {
      again = read.block;
      read = { block: recorded().observed ?? -1n, at: performance.now() };
    }
    const last = least(finalized, again);
    for (const [from, to] of blockRanges(firstAfterFinal(), last)) {
      signal?.throwIfAborted();
      if ((await recordRange(from, to, last)) !== null) continue;
      // L1 numbers what it makes by itself: the node left out an earlier making.
      await readAgain(fromBlock, from - 1n, signal);
      if ((await recordRange(from, to, last)) === null) refuseGap(from);
    }
    return last;
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
  const follow = sharedRuns(async (signal) => {
    const finalized = await portal.finalizedBlockNumber();
    await caughtUp(signal);
    const gone = await takeBackReorganised(engine, portal, fromBlock, {
      secondLookMs,
      signal,
    });
    if (gone !== null) {
      again = least(again, gone - 1n);
      read = { block: least(read.block, gone - 1n), at: read.at };
    }
    const newest = await portal.blockNumber();
    const { observed } = recorded();
    const first = observed === null ? fromBlock : observed + 1n;
    for (const [from, to] of blockRanges(first, newest)) {
      signal?.throwIfAborted();
      await readNew(from, to, signal);
    }
    await recordFinal(await confirm(finalized, signal));
  });
  return {
    follow,
    readAgain: (from: bigint, signal?: AbortSignal) =>
      readAgain(from, recorded().observed ?? -1n, signal),
  } satisfies Follower;
}

function refuseGap(from: bigint): never {
  throw new MintmarkError(
    "l1_failed",
    `the node leaves out events before block ${from}; they are asked for again`,
  );
}
