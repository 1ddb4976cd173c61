import { severalAtOnce } from "./at-once.ts";
import { MintmarkError } from "./errors.ts";
import type { CommitEvent, L1Block, L1Event, L1Reader } from "./ports.ts";

/** Most blocks of one query for logs; many nodes refuse more. */
export const MOST_BLOCKS = 2_000n;

/**
 * Blocks that the next read covers again, because a node that lags leaves logs out without an
 * error.
 */
const OVERLAP = 128n;

/** Default of the least milliseconds between two looks at what cannot be undone. */
export const SECOND_LOOK_MS = 15_000;

/** Blocks behind the newest whose state an ordinary node gives: it keeps 128. */
const KEPT_STATES = 100n;

/**
 * The block as of which facts are asked that shall stay: the newest final one, or the oldest whose
 * state an ordinary node still has, if that is newer.
 */
export async function settledBlock(
  l1: Pick<L1Reader, "blockNumber" | "finalizedBlockNumber">,
): Promise<bigint> {
  const [newest, final] = await Promise.all([l1.blockNumber(), l1.finalizedBlockNumber()]);
  return askable(final, newest);
}

/** The block itself, or the oldest whose state an ordinary node has, if that is newer. */
export function askable(block: bigint, newest: bigint): bigint {
  const oldest = newest - KEPT_STATES;
  return block > oldest ? block : oldest;
}

export function least(a: bigint, b: bigint): bigint {
  return a < b ? a : b;
}

/**
 * The block to continue from: reads the newest blocks before `next` again, but none before `first`.
 */
export function overlapping(next: bigint, first: bigint): bigint {
  return next - OVERLAP > first ? next - OVERLAP : first;
}

/** The blocks from `first` to `last`, in ranges that nodes accept. */
export function* blockRanges(
  first: bigint,
  last: bigint,
): Generator<readonly [from: bigint, to: bigint]> {
  for (let from = first; from <= last; from += MOST_BLOCKS)
    yield [from, least(from + MOST_BLOCKS - 1n, last)];
}

/** The batches that L1 took in these blocks, in its order. */
export async function* commitsIn(
  l1: Pick<L1Reader, "events">,
  first: bigint,
  last: bigint,
  signal?: AbortSignal,
): AsyncGenerator<CommitEvent> {
  for (const [from, to] of blockRanges(first, last)) {
    signal?.throwIfAborted();
    for (const event of await l1.events(from, to)) if (event.type === "batchCommitted") yield event;
  }
}

/**
 * The events of a range and its last block, all of one chain. Throws `l1_failed` when the block
 * changes meanwhile, or an event is of another block than the chain's.
 */
export async function eventsUpTo(
  l1: Pick<L1Reader, "block" | "events">,
  from: bigint,
  to: bigint,
): Promise<{ readonly events: readonly L1Event[]; readonly block: L1Block }> {
  const before = await requireBlock(l1, to);
  const events = await l1.events(from, to);
  const hashes = new Map(events.map(({ blockNumber, blockHash }) => [blockHash, blockNumber]));
  await severalAtOnce([...hashes], async ([hash, number]) => {
    if (hash !== undefined && (await requireBlock(l1, number)).hash !== hash)
      throw new MintmarkError("l1_failed", `block ${number} has two hashes here; try again`);
  });
  const block = await requireBlock(l1, to);
  if (block.hash === before.hash) return { events, block };
  throw new MintmarkError("l1_failed", `block ${to} was replaced while it was read; try again`);
}

/** Throws `l1_failed` when the chain does not have the block. */
export async function requireBlock(
  l1: Pick<L1Reader, "block">,
  at: bigint | "latest",
): Promise<L1Block> {
  const block = await l1.block(at);
  if (block === null) {
    const fault =
      at === "latest" ? "has no newest block" : `does not have block ${at}, or no longer`;
    throw new MintmarkError("l1_failed", `the chain ${fault}`);
  }
  return block;
}
