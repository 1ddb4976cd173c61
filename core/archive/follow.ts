import { blockRanges, eventsUpTo, overlapping, requireBlock } from "../blocks.ts";
import { MintmarkError } from "../errors.ts";
import type { L1Event, L1Reader } from "../ports.ts";
import type { Archive } from "./archive.ts";
import type { BatchSource } from "./batch-source.ts";
import { type BlobReading, type BlobSource, batchesFrom } from "./blob-source.ts";

/** The part of L1 that an archive follows. */
export type FollowedChain = Pick<L1Reader, "block" | "events" | "finalizedBlockNumber" | "rollupData">;

/** The progress of {@link follow}. */
export interface Progress {
  readonly block: bigint;
  readonly toBlock: bigint;
  readonly batches: number;
}

/** Options of {@link follow}. */
export interface FollowOptions {
  readonly archive: Archive;
  readonly l1: FollowedChain;
  /** Deployment block of the settlement contract. */
  readonly fromBlock: bigint;
  /** Default: the newest final block. Other blocks can be replaced; then the archive must be rebuilt. */
  readonly toBlock?: bigint;
  /** Sources of the blobs of rollup batches, asked before {@link FollowOptions.sources}. */
  readonly blobs?: readonly BlobSource[];
  /** Sources of validium data, and of rollup data that the chain does not give, in this order. */
  readonly sources?: readonly BatchSource[];
  /** Total milliseconds that one source may spend without giving data; default 120,000. */
  readonly wasteMs?: number;
  readonly onProgress?: (progress: Progress) => void;
  /** Called when a source fails or gives other data. The next source follows. */
  readonly onFault?: (source: BatchSource, batchId: string, error: unknown) => void;
  readonly signal?: AbortSignal;
}

/**
 * Brings an archive up to a block of L1: commits with their data, withdrawals, voided duplicates. Rollup data comes
 * from the commits' transactions or from sources of their blobs, validium data from the sources. The next run retries
 * missing data.
 *
 * @throws MintmarkError `l1_failed` when the chain is unreachable; `store_mismatch` for another chain than before
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

/** The batch data of a commit; null when the chain does not give it. Then the chain and the sources are asked later. */
async function dataOf(event: L1Event, { l1 }: FollowOptions): Promise<Uint8Array | null> {
  if (event.type !== "batchCommitted" || event.mode !== "zk-rollup") return null;
  return l1.rollupData(event.txHash);
}

/** Asks for missing data. A source may be malicious and stall: one that has used up its time is skipped this run. */
async function supplyMissing(options: FollowOptions): Promise<void> {
  const { archive, blobs = [], onFault, wasteMs = 120_000, signal } = options;
  const sources = [chainOf(options), ...batchesFrom(blobs, readingOf(options)), ...(options.sources ?? [])];
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

function readingOf({ archive, l1 }: FollowOptions): BlobReading {
  return { commit: (mode, batchNumber) => archive.commit(mode, batchNumber), kzg: archive.kzg, l1 };
}

/** L1 as a source of rollup batches. A node can lack a transaction that another node reported, or have dropped it. */
function chainOf({ archive, l1 }: FollowOptions): BatchSource {
  return {
    name: "L1",
    async batchData(mode, batchNumber) {
      const commit = mode === "zk-rollup" ? await archive.commit(mode, batchNumber) : null;
      return commit === null ? null : l1.rollupData(commit.txHash);
    },
  };
}

/** The followed block must still exist: an archive takes only final blocks. */
async function requireSameChain({ position }: Archive, l1: FollowedChain): Promise<void> {
  if (position === null || position.hash === null) return;
  const { hash } = await requireBlock(l1, position.block);
  if (hash === position.hash) return;
  throw new MintmarkError(
    "store_mismatch",
    `Block ${position.block} of this chain differs from the store's. Rebuild into an empty store.`,
  );
}

function nextBlock({ position }: Archive, fromBlock: bigint): bigint {
  if (position === null) return fromBlock;
  // The events of a block may be applied in part.
  return position.hash === null ? position.block : position.block + 1n;
}

function progressOf(archive: Archive, block: bigint, toBlock: bigint): Progress {
  const { countValidium, countRollup } = archive.state();
  return { block, toBlock, batches: countValidium + countRollup };
}
