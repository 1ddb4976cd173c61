import { blockRanges, eventsUpTo, overlapping, requireBlock } from "../blocks.ts";
import { MintmarkError } from "../errors.ts";
import type { L1Event, L1Reader } from "../ports.ts";
import type { Archive } from "./archive.ts";
import type { BatchSource } from "./batch-source.ts";

/** The part of L1 that an archive is made from. */
export type FollowedChain = Pick<L1Reader, "block" | "events" | "finalizedBlockNumber" | "rollupData">;

/** How far an archive has followed. */
export interface Progress {
  readonly block: bigint;
  readonly toBlock: bigint;
  readonly batches: number;
}

/** What an archive follows, and who gives the data. */
export interface FollowOptions {
  readonly archive: Archive;
  readonly l1: FollowedChain;
  /** Block of the settlement contract's deployment. */
  readonly fromBlock: bigint;
  /** Default: the newest final block. Blocks that are not final may be replaced, and then the archive must be made anew. */
  readonly toBlock?: bigint;
  /** Asked in this order for the data of validium batches, and of rollup batches that the chain does not give. */
  readonly sources?: readonly BatchSource[];
  /** Milliseconds that one source may take without giving what it was asked for, all questions together; default 120 000. */
  readonly wasteMs?: number;
  readonly onProgress?: (progress: Progress) => void;
  /** A source that failed or gave something else; the next one is asked. */
  readonly onFault?: (source: BatchSource, batchId: string, error: unknown) => void;
  readonly signal?: AbortSignal;
}

/**
 * Brings an archive up to a block of L1: commits with their data, withdrawals, voided duplicates. Rollup data comes from the commits' own
 * transactions; validium data from whoever has it, and what nobody has is asked for again the next time.
 *
 * @throws MintmarkError `l1_failed` when the chain cannot be asked; `store_mismatch` when it is not the chain that was followed before
 */
export async function follow(options: FollowOptions): Promise<void> {
  const { archive, l1, fromBlock, onProgress, signal } = options;
  const toBlock = options.toBlock ?? (await l1.finalizedBlockNumber());
  await requireSameChain(archive, l1);
  const next = nextBlock(archive, fromBlock);
  for (const [from, to] of blockRanges(next <= toBlock ? overlapping(next, fromBlock) : next, toBlock)) {
    signal?.throwIfAborted();
    const { events, block } = await eventsUpTo(l1, from, to);
    for (const event of events) {
      signal?.throwIfAborted();
      if (archive.hasApplied(event)) continue;
      await archive.apply(event, await dataOf(event, options));
      if (event.type === "batchCommitted") onProgress?.(progressOf(archive, event.blockNumber, toBlock));
    }
    await archive.advance(block);
    onProgress?.(progressOf(archive, to, toBlock));
  }
  await supplyMissing(options);
}

/** A commit's batch data; null when the chain does not give it: others, and the chain again, are asked once it is read. */
async function dataOf(event: L1Event, { l1 }: FollowOptions): Promise<Uint8Array | null> {
  if (event.type !== "batchCommitted" || event.mode !== "zk-rollup") return null;
  return l1.rollupData(event.txHash);
}

/**
 * Asks for the data that nobody has given yet. Whoever withholds batches may also be among the sources, and answer late, or ask to be asked
 * later: so a source that has used up the time that it may waste is left out until the next time.
 */
async function supplyMissing(options: FollowOptions): Promise<void> {
  const { archive, onFault, wasteMs = 120_000, signal } = options;
  const sources = [chainOf(options), ...(options.sources ?? [])];
  const left = new Map(sources.map((source) => [source, wasteMs]));
  for (const { mode, batchNumber } of await archive.missing()) {
    for (const source of sources) {
      const patience = left.get(source) ?? 0;
      if (patience <= 0) continue;
      signal?.throwIfAborted();
      const began = performance.now();
      const late = AbortSignal.timeout(Math.ceil(patience));
      try {
        const data = await source.batchData(mode, batchNumber, signal ? AbortSignal.any([late, signal]) : late);
        if (data !== null) {
          await archive.supply(mode, batchNumber, data);
          break;
        }
      } catch (error) {
        signal?.throwIfAborted();
        onFault?.(source, `${mode}-${batchNumber}`, error);
      }
      left.set(source, late.aborted ? 0 : patience - (performance.now() - began));
    }
  }
}

/** L1 as a source of rollup batches: a node may not have had a transaction yet that another told of, or have dropped it since. */
function chainOf({ archive, l1 }: FollowOptions): BatchSource {
  return {
    name: "L1",
    async batchData(mode, batchNumber) {
      const commit = mode === "zk-rollup" ? await archive.commit(mode, batchNumber) : null;
      return commit === null ? null : l1.rollupData(commit.txHash);
    },
  };
}

/** What was followed is still there: an archive takes only what it was told is final. */
async function requireSameChain({ position }: Archive, l1: FollowedChain): Promise<void> {
  if (position === null || position.hash === null) return;
  const { hash } = await requireBlock(l1, position.block);
  if (hash === position.hash) return;
  throw new MintmarkError(
    "store_mismatch",
    `Block ${position.block} of this chain is not the one that the store was made from. Rebuild into an empty store.`,
  );
}

function nextBlock({ position }: Archive, fromBlock: bigint): bigint {
  if (position === null) return fromBlock;
  // The events of a block may have been applied in part.
  return position.hash === null ? position.block : position.block + 1n;
}

function progressOf(archive: Archive, block: bigint, toBlock: bigint): Progress {
  const { countValidium, countRollup } = archive.state();
  return { block, toBlock, batches: countValidium + countRollup };
}
