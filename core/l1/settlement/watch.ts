import { pause } from "../../backoff.ts";
import { blockRanges, eventsUpTo, least, requireBlock } from "../../blocks.ts";
import { MintmarkError } from "../../errors.ts";
import type { SettlementPort } from "../../operator.ts";
import type { Portal } from "../../ports.ts";
import type { SecondRead } from "./second-read.ts";

/** The questions to a chain that is followed. */
export type Watched = Pick<Portal, "settlement" | "blockNumber" | "finalizedBlockNumber" | "block" | "events">;

export interface WatchOptions {
  readonly engine: SettlementPort;
  /** The contract whose chain is followed. */
  readonly portal: Watched;
  /** The first block to read: that of the contract's deployment. */
  readonly fromBlock: bigint;
  readonly secondRead: SecondRead;
  /** How long a node may lag behind earlier reads, in ms. */
  readonly lagMs: number;
  readonly signal?: AbortSignal;
}

/** Pause between two questions to a node that lags. */
const LAG_POLL_MS = 500;

/**
 * Brings the engine up to a contract's chain. Takes back what a reorganisation removed, applies commits and withdrawals
 * (also those that owners made themselves), then finality. Each range of blocks is one atomic step, so an interrupted
 * run continues where it stopped. Blocks are read again before they count as final, because the nodes behind one RPC
 * may differ.
 *
 * @throws MintmarkError `l1_failed` when the chain cannot be asked, changes during the read, or answers differently the
 * second time: try again
 */
export async function applyL1Events(options: WatchOptions): Promise<void> {
  const { portal } = options;
  const finalized = await portal.finalizedBlockNumber();
  await caughtUp(options);
  await takeBackReorganised(options);
  const newest = await portal.blockNumber();
  for (const [from, to] of blockRanges(nextBlock(options), newest)) await applyRange(options, from, to);
  await readAgain(options, finalized);
  await recordFinal(options, finalized);
}

/**
 * Waits while the newest block is older than earlier reads. Then it is believed: a shorter chain has replaced the old
 * one.
 */
async function caughtUp({ engine, portal, lagMs, signal }: WatchOptions): Promise<void> {
  const deadline = performance.now() + lagMs;
  while ((await portal.blockNumber()) < (observedOf(engine, portal) ?? 0n) && performance.now() < deadline) {
    await pause(LAG_POLL_MS, signal);
  }
}

async function readAgain(options: WatchOptions, finalized: bigint): Promise<void> {
  const { engine, portal, secondRead } = options;
  const observed = observedOf(engine, portal) ?? -1n;
  const differs = await secondRead.upTo(least(finalized, observed), portal);
  if (differs === null) return;
  await takeBack(options, differs);
  throw new MintmarkError("l1_failed", `the RPC's nodes disagree on the events of block ${differs}; reading it again`);
}

async function applyRange({ engine, portal, secondRead }: WatchOptions, from: bigint, to: bigint): Promise<void> {
  const { events, block } = await eventsUpTo(portal, from, to);
  await engine.operator.recordEvents(portal.settlement.chainId, events, to, { blockHash: block.hash });
  secondRead.saw(from, events);
}

/** The hash is valid for the chain that was read only if the newest read block is still there. */
async function recordFinal({ engine, portal }: WatchOptions, block: bigint): Promise<void> {
  const { chainId } = portal.settlement;
  const { observed, finalized } = engine.operator.portal(chainId);
  if (observed === null || block <= (finalized ?? -1n)) return;
  const { number, hash } = await requireBlock(portal, least(block, observed));
  for await (const newest of engine.operator.checkpoints(chainId)) {
    if ((await requireBlock(portal, newest.number)).hash === newest.hash) break;
    throw new MintmarkError("l1_failed", `block ${newest.number} was replaced after it was read; try again`);
  }
  await engine.operator.recordFinalized(chainId, number, { blockHash: hash });
}

/** Goes back to the newest read block that is still on the chain. */
export async function takeBackReorganised(options: Omit<WatchOptions, "lagMs">): Promise<void> {
  const { engine, portal, fromBlock } = options;
  const { observed, finalized } = engine.operator.portal(portal.settlement.chainId);
  if (observed === null) return;
  const final = least(observed, finalized ?? fromBlock - 1n);
  const { common, finalReplaced } = await compareCheckpoints(options, final);
  if (finalReplaced) return takeBack(options, (common ?? fromBlock - 1n) + 1n, "below final");
  const kept = common !== null && common > final ? common : final;
  if (kept !== observed) await takeBack(options, kept + 1n);
}

/** A shorter chain proves nothing yet: nodes can lag far behind. */
function endsBefore(block: bigint): MintmarkError {
  return new MintmarkError("l1_failed", `the chain ends before block ${block}, which was final`);
}

/** The newest checkpoint that is still on the chain, and whether a final one above it is not. */
async function compareCheckpoints(
  { engine, portal }: Pick<WatchOptions, "engine" | "portal">,
  final: bigint,
): Promise<{ readonly common: bigint | null; readonly finalReplaced: boolean }> {
  let finalReplaced = false;
  for await (const { number, hash } of engine.operator.checkpoints(portal.settlement.chainId)) {
    const block = await portal.block(number);
    if (block?.hash === hash) return { common: number, finalReplaced };
    if (number > final) continue;
    if (block === null) throw endsBefore(number);
    finalReplaced = true;
  }
  return { common: null, finalReplaced };
}

/** Drops what was read of these blocks. */
async function takeBack(
  { engine, portal, secondRead }: Omit<WatchOptions, "lagMs">,
  fromBlock: bigint,
  reach: "above final" | "below final" = "above final",
): Promise<void> {
  const { chainId } = portal.settlement;
  if (reach === "above final") await engine.operator.recordReorg(chainId, fromBlock);
  else await engine.operator.recordDeepReorg(chainId, fromBlock);
  secondRead.forget(fromBlock);
}

function observedOf(engine: SettlementPort, { settlement }: Watched): bigint | null {
  return engine.operator.portal(settlement.chainId).observed;
}

function nextBlock({ engine, portal, fromBlock }: WatchOptions): bigint {
  const observed = observedOf(engine, portal);
  return observed === null ? fromBlock : observed + 1n;
}
