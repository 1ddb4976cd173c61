import type { Engine } from "../engine.ts";
import type { L1Reader } from "../ports.ts";

/** Most blocks of one question for logs; nodes refuse longer ranges. */
const RANGE = 2_000n;

/**
 * Applies to the engine what happened on L1 since its cursor: commits and withdrawals, also those that owners made by themselves, then
 * finality. Each range is one atomic step of the engine, so an interrupted run goes on where it stopped.
 *
 * @param fromBlock - where to start when the engine has no cursor yet: the block of the contract's deployment
 */
export async function applyL1Events(engine: Engine, l1: L1Reader, fromBlock: bigint): Promise<void> {
  const newest = await l1.blockNumber();
  const cursor = engine.settlementCursor();
  if (cursor !== null && newest < cursor) await engine.recordReorg(newest + 1n);
  for (let from = nextBlock(engine, fromBlock); from <= newest; from = nextBlock(engine, fromBlock)) {
    const to = from + RANGE - 1n < newest ? from + RANGE - 1n : newest;
    await engine.recordEvents(await l1.events(from, to), to);
  }
  await engine.recordFinalized(await l1.finalizedBlockNumber());
}

function nextBlock(engine: Engine, fromBlock: bigint): bigint {
  const cursor = engine.settlementCursor();
  return cursor === null ? fromBlock : cursor + 1n;
}
