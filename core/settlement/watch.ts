import { pause } from "../backoff.ts";
import type { Engine } from "../engine.ts";
import { MintmarkError } from "../errors.ts";
import type { L1Block, L1Reader } from "../ports.ts";
import type { Checkpoints } from "./checkpoints.ts";
import type { SecondLook } from "./second-look.ts";

/** Most blocks of one question for logs; nodes refuse longer ranges. */
const RANGE = 2_000n;

export interface WatchOptions {
  readonly engine: Engine;
  readonly l1: L1Reader;
  readonly checkpoints: Checkpoints;
  /** Where to start when the engine has no cursor yet: the block of the contract's deployment. */
  readonly fromBlock: bigint;
  readonly secondLook: SecondLook;
  /** Milliseconds that a node may be behind what was read before. */
  readonly lagMs: number;
  readonly signal?: AbortSignal;
}

/** Between two questions to a node that is behind. */
const LAG_POLL_MS = 500;

/**
 * Brings the engine to what L1 is now: takes back what a reorganisation removed, applies commits and withdrawals (also those that
 * owners made by themselves), then finality. Each range of blocks is one atomic step of the engine, so an interrupted run goes on
 * where it stopped. What becomes final is read once more before it is taken to be, because the nodes behind one RPC may differ.
 *
 * @throws MintmarkError `l1_failed` when the chain cannot be asked, changes while it is read, or says something else the second time: try again
 */
export async function applyL1Events(options: WatchOptions): Promise<void> {
  const { engine, l1, checkpoints, fromBlock } = options;
  const finalized = await l1.finalizedBlockNumber();
  await caughtUp(options);
  await takeBackReorganised(options);
  const newest = await l1.blockNumber();
  for (let from = nextBlock(engine, fromBlock); from <= newest; from = nextBlock(engine, fromBlock)) {
    await applyRange(options, from, least(from + RANGE - 1n, newest));
  }
  await lookAgain(options, finalized);
  await engine.recordFinalized(finalized);
  await checkpoints.prune(finalized);
}

/** Waits while the newest block is one below those that were read. After that it is believed: the chain was replaced by a shorter one. */
async function caughtUp({ engine, l1, lagMs, signal }: WatchOptions): Promise<void> {
  const deadline = Date.now() + lagMs;
  while ((await l1.blockNumber()) < (engine.settlementCursor() ?? 0n) && Date.now() < deadline) {
    await pause(LAG_POLL_MS, signal);
  }
}

async function lookAgain({ engine, l1, checkpoints, secondLook }: WatchOptions, finalized: bigint): Promise<void> {
  const cursor = engine.settlementCursor() ?? -1n;
  const differs = await secondLook.upTo(least(finalized, cursor), l1);
  if (differs === null) return;
  await takeBack({ engine, checkpoints, secondLook }, differs);
  throw new MintmarkError("l1_failed", `the RPC's nodes disagree on the events of block ${differs}; reading it again`);
}

/** One range, all of one chain: its last block is the same before and after its events are read. */
async function applyRange(
  { engine, l1, checkpoints, secondLook }: WatchOptions,
  from: bigint,
  to: bigint,
): Promise<void> {
  const before = await blockOf(l1, to);
  const events = await l1.events(from, to);
  const after = await blockOf(l1, to);
  if (before.hash !== after.hash) throw new MintmarkError("l1_failed", `block ${to} was replaced while it was read`);
  // The checkpoint goes first: a cursor without one could not be checked after a restart.
  await checkpoints.put(after);
  await engine.recordEvents(events, to);
  secondLook.saw(from, events);
}

/** Goes back to the newest block that was read and is still on the chain. */
async function takeBackReorganised(options: WatchOptions): Promise<void> {
  const { engine, l1, checkpoints, fromBlock } = options;
  const cursor = engine.settlementCursor();
  if (cursor === null) return;
  // Without a checkpoint in common, what was final when it was read still is. What is final now says nothing of what was read: a
  // watcher that slept may find final blocks in the place of those it knows.
  let common = least(cursor, engine.settlementFinalized() ?? fromBlock - 1n);
  for (const { number, hash } of checkpoints.downFrom(cursor)) {
    if (number <= common) break;
    if ((await l1.block(number))?.hash === hash) common = number;
  }
  if (common !== cursor) await takeBack(options, common + 1n);
}

/** What was read of these blocks counts no more. */
async function takeBack(
  { engine, checkpoints, secondLook }: Pick<WatchOptions, "engine" | "checkpoints" | "secondLook">,
  fromBlock: bigint,
): Promise<void> {
  await engine.recordReorg(fromBlock);
  await checkpoints.dropFrom(fromBlock);
  secondLook.forget(fromBlock);
}

async function blockOf(l1: L1Reader, number: bigint): Promise<L1Block> {
  const block = await l1.block(number);
  if (block === null) throw new MintmarkError("l1_failed", `the chain has no block ${number} any more, or not yet`);
  return block;
}

function nextBlock(engine: Engine, fromBlock: bigint): bigint {
  const cursor = engine.settlementCursor();
  return cursor === null ? fromBlock : cursor + 1n;
}

function least(a: bigint, b: bigint): bigint {
  return a < b ? a : b;
}
