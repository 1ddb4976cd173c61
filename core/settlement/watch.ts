import { pause } from "../backoff.ts";
import { blockRanges, eventsUpTo, least } from "../blocks.ts";
import { MintmarkError } from "../errors.ts";
import { type Batch, MODES } from "../model.ts";
import type { SettlementPort } from "../operator.ts";
import type { Portal } from "../ports.ts";
import { countOf } from "../protocol/commitment.ts";
import type { Checkpoints } from "./checkpoints.ts";
import type { SecondLook } from "./second-look.ts";

/** What is asked of a chain to follow it. */
export type Watched = Pick<Portal, "settlement" | "blockNumber" | "finalizedBlockNumber" | "block" | "events">;

export interface WatchOptions {
  readonly engine: SettlementPort;
  /** The contract whose chain is followed. */
  readonly portal: Watched;
  readonly checkpoints: Checkpoints;
  /** Where to start when nothing of the chain is observed yet: the block of the contract's deployment. */
  readonly fromBlock: bigint;
  readonly secondLook: SecondLook;
  /** Milliseconds that a node may be behind what was read before. */
  readonly lagMs: number;
  readonly signal?: AbortSignal;
}

/** Between two questions to a node that is behind. */
const LAG_POLL_MS = 500;

/**
 * Brings the engine to what a contract's chain is now: takes back what a reorganisation removed, applies commits and withdrawals (also those that
 * owners made by themselves), then finality. Each range of blocks is one atomic step of the engine, so an interrupted run goes on
 * where it stopped. What becomes final is read once more before it is taken to be, because the nodes behind one RPC may differ.
 *
 * @throws MintmarkError `l1_failed` when the chain cannot be asked, changes while it is read, or says something else the second time: try again
 */
export async function applyL1Events(options: WatchOptions): Promise<void> {
  const { engine, portal, checkpoints } = options;
  const { chainId } = portal.settlement;
  const finalized = await portal.finalizedBlockNumber();
  await caughtUp(options);
  await takeBackReorganised(options);
  const newest = await portal.blockNumber();
  for (const [from, to] of blockRanges(nextBlock(options), newest)) await applyRange(options, from, to);
  await lookAgain(options, finalized);
  await engine.operator.recordFinalized(chainId, finalized);
  await checkpoints.prune(finalized);
}

/** Waits while the newest block is one below those that were read. After that it is believed: the chain was replaced by a shorter one. */
async function caughtUp({ engine, portal, lagMs, signal }: WatchOptions): Promise<void> {
  const deadline = performance.now() + lagMs;
  while ((await portal.blockNumber()) < (observedOf(engine, portal) ?? 0n) && performance.now() < deadline) {
    await pause(LAG_POLL_MS, signal);
  }
}

async function lookAgain(options: WatchOptions, finalized: bigint): Promise<void> {
  const { engine, portal, secondLook } = options;
  const observed = observedOf(engine, portal) ?? -1n;
  const differs = await secondLook.upTo(least(finalized, observed), portal);
  if (differs === null) return;
  await takeBack(options, differs);
  throw new MintmarkError("l1_failed", `the RPC's nodes disagree on the events of block ${differs}; reading it again`);
}

async function applyRange(
  { engine, portal, checkpoints, secondLook }: WatchOptions,
  from: bigint,
  to: bigint,
): Promise<void> {
  const { events, block } = await eventsUpTo(portal, from, to);
  // The checkpoint goes first: a cursor without one could not be checked after a restart.
  await checkpoints.put(block);
  await engine.operator.recordEvents(portal.settlement.chainId, events, to);
  secondLook.saw(from, events);
}

/** Goes back to the newest block that was read and is still on the chain. */
async function takeBackReorganised(options: WatchOptions): Promise<void> {
  const { engine, portal, fromBlock } = options;
  const { observed, finalized } = engine.operator.portal(portal.settlement.chainId);
  if (observed === null) return;
  const final = least(observed, finalized ?? fromBlock - 1n);
  const { common, finalReplaced } = await compareCheckpoints(options, observed, final);
  if (finalReplaced) await takeBack(options, (common ?? fromBlock - 1n) + 1n, "below final");
  else if (common === null || common < final) {
    // Checkpoints are missing. What was final when it was read still is, unless the chain has not got the commits that were read of it.
    // What is final now says nothing of what was read: a watcher that slept may find final blocks in the place of those it knows.
    const replaced = await replacedCommits(options, final);
    if (replaced !== null) await takeBack(options, replaced, "below final");
    else if (final !== observed) await takeBack(options, final + 1n);
  } else if (common !== observed) await takeBack(options, common + 1n);
}

/** The block behind the newest final commit that the chain still has, when it lacks a later one; null when it lacks none. */
async function replacedCommits({ engine, portal, fromBlock }: WatchOptions, final: bigint): Promise<bigint | null> {
  if (portal.settlement.chainId !== engine.settlement.chainId) return null;
  const committed = await engine.batches.committedState();
  let kept = fromBlock - 1n;
  let isReplaced = false;
  for (const mode of MODES) {
    for (let at = countOf(mode, committed) - 1; at >= 0; at--) {
      const batch = await engine.batches.get(mode, at);
      const block = batch.l1BlockNumber;
      if (block === null || block > final) continue;
      if (await isCommitted(batch, block, portal)) {
        if (block > kept) kept = block;
        break;
      }
      isReplaced = true;
    }
  }
  return isReplaced ? kept + 1n : null;
}

/** Whether the chain has a batch's commit in this block, with the header that its withdrawals need. */
async function isCommitted(batch: Batch, block: bigint, portal: Watched): Promise<boolean> {
  if ((await portal.block(block)) === null) throw endsBefore(block);
  return (await portal.events(block, block)).some(
    (event) =>
      event.type === "batchCommitted" &&
      event.mode === batch.mode &&
      event.batchNumber === batch.batchNumber &&
      event.committedAt === batch.committedAt &&
      event.sequence === batch.l1Sequence,
  );
}

/** A shorter chain says nothing yet: nodes can be far behind. */
function endsBefore(block: bigint): MintmarkError {
  return new MintmarkError("l1_failed", `the chain ends before block ${block}, which was final`);
}

/** The newest checkpoint that is still on the chain, and whether a final one above it is not. */
async function compareCheckpoints(
  { portal, checkpoints }: WatchOptions,
  observed: bigint,
  final: bigint,
): Promise<{ readonly common: bigint | null; readonly finalReplaced: boolean }> {
  let finalReplaced = false;
  for (const { number, hash } of checkpoints.downFrom(observed)) {
    const block = await portal.block(number);
    if (block?.hash === hash) return { common: number, finalReplaced };
    if (number > final) continue;
    if (block === null) throw endsBefore(number);
    finalReplaced = true;
  }
  return { common: null, finalReplaced };
}

/** What was read of these blocks counts no more. */
async function takeBack(
  { engine, portal, checkpoints, secondLook }: WatchOptions,
  fromBlock: bigint,
  reach: "above final" | "below final" = "above final",
): Promise<void> {
  const { chainId } = portal.settlement;
  if (reach === "above final") await engine.operator.recordReorg(chainId, fromBlock);
  else await engine.operator.recordDeepReorg(chainId, fromBlock);
  await checkpoints.dropFrom(fromBlock);
  secondLook.forget(fromBlock);
}

function observedOf(engine: SettlementPort, { settlement }: Watched): bigint | null {
  return engine.operator.portal(settlement.chainId).observed;
}

function nextBlock({ engine, portal, fromBlock }: WatchOptions): bigint {
  const observed = observedOf(engine, portal);
  return observed === null ? fromBlock : observed + 1n;
}
