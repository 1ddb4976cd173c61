import { requireBlock } from "../blocks.ts";
import { invalid, MintmarkError, messageOf } from "../errors.ts";
import { batchIdOf, type Hash } from "../model.ts";
import type { AssetId, CommittedBlobs, L1Reader } from "../ports.ts";
import { BLOB_BYTES, blobBatchData } from "../protocol/blob-batch.ts";
import type { Kzg } from "../protocol/kzg/kzg-thread.ts";
import { versionedHash } from "../protocol/versioned-hash.ts";
import {
  type BatchContent,
  type CommittedPlace,
  type DerivedBatch,
  deriveCommitted,
  hasBlobs,
  isBatch,
} from "./derive.ts";
import type { Commit } from "./keys.ts";
import type { BatchSource, BlobSource } from "./sources.ts";

/** Where the data of committed batches comes from. */
export interface DataSources {
  /** Sources of the blobs of rollup batches, asked before {@link DataSources.sources}. */
  readonly blobs?: readonly BlobSource[];
  /** Sources of validium data, and of rollup data that the chain does not give, in this order. */
  readonly sources?: readonly BatchSource[];
  /** Total milliseconds that one source may spend without giving data; default 120,000. */
  readonly wasteMs?: number;
}

/** L1's record of a batch: an event, or the archive's. */
export type CommittedBatch = Omit<Commit, "leftOut" | "committedAt"> &
  Partial<Pick<Commit, "leftOut">>;

/** The part of L1 that knows which assets a batch could name. */
export type Registry = Pick<L1Reader, "registrations">;

/** The part of L1 that gives the data of rollup batches, and leads to their blobs. */
type CommitReader = Pick<L1Reader, "block" | "rollupData"> & Registry;

/**
 * Milliseconds that an answer without data may take, and waste none: an honest node has pruned old
 * blobs.
 */
const FREE_MS = 500;

type Source = { readonly name: string };

const L1: Source = { name: "L1" };

/**
 * Finds the data of committed batches: calldata on L1, blobs in the sources of blobs, anything else
 * in the other sources. A source may be malicious and stall, so one that has used up its time is
 * not asked again.
 */
export class CommittedData {
  readonly #l1: CommitReader;
  readonly #kzg: Kzg;
  readonly #from: DataSources;
  readonly #wasted = new Map<Source, number>(); // Milliseconds that each source has wasted

  constructor(l1: CommitReader, kzg: Kzg, from: DataSources) {
    this.#l1 = l1;
    this.#kzg = kzg;
    this.#from = from;
  }

  /**
   * The answer of `take` for the first data that it takes. It rejects for other data. null when
   * nobody gives the data.
   *
   * @param onFault - called when a source fails or gives other data; the error is null when it does
   *   not have the batch
   */
  async find<T>(
    commit: CommittedBatch,
    take: (data: Uint8Array) => Promise<T>,
    onFault: (source: Source, error: unknown) => void,
    signal?: AbortSignal,
  ): Promise<T | null> {
    const { wasteMs = 120_000 } = this.#from;
    for (const [source, read] of this.#readers(commit)) {
      const patience = wasteMs - (this.#wasted.get(source) ?? 0);
      if (patience <= 0) continue;
      signal?.throwIfAborted();
      const began = performance.now();
      const late = AbortSignal.timeout(Math.ceil(patience));
      let free = 0;
      try {
        const data = await read(signal ? AbortSignal.any([late, signal]) : late);
        if (data !== null) return await take(data);
        free = FREE_MS;
        onFault(source, null);
      } catch (error) {
        signal?.throwIfAborted();
        onFault(source, error);
      }
      const spent = late.aborted ? patience : Math.max(0, performance.now() - began - free);
      this.#wasted.set(source, wasteMs - patience + spent);
    }
    return null;
  }

  /**
   * The committed batch from its data. Rejects with the code and the fault of each source when none
   * gives it.
   */
  async batch(
    commit: CommittedBatch,
    code: "proof_not_ready" | "l1_failed",
    signal?: AbortSignal,
  ): Promise<{ readonly data: Uint8Array; readonly batch: DerivedBatch }> {
    const faults: string[] = [];
    const onFault = ({ name }: Source, error: unknown) => {
      faults.push(`${name}: ${error === null ? "does not have it" : messageOf(error)}`);
    };
    const check = async (data: Uint8Array) => ({
      data,
      batch: await checkedBatch(commit, data, this.#kzg, this.#l1, deriveCommitted),
    });
    const found = await this.find(commit, check, onFault, signal);
    if (found !== null) return found;
    const others = commit.blobs === undefined ? "" : ", a beacon node or a folder of blobs";
    const advice = `name a member or a server as a source (--peers)${others}`;
    const asked = faults.length === 0 ? advice : `${faults.join("; ")}; ${advice}`;
    throw new MintmarkError(
      code,
      `No source gave the data of ${batchIdOf(commit.mode, commit.batchNumber)}: ${asked}.`,
    );
  }

  /** The sources of a batch, in order. Each reads its data, or null when it does not have it. */
  #readers(
    commit: CommittedBatch,
  ): (readonly [Source, (signal: AbortSignal) => Promise<Uint8Array | null>])[] {
    const { mode, batchNumber, txHash, blobs } = commit;
    const { blobs: blobSources = [], sources = [] } = this.#from;
    const elsewhere = sources.map(
      (source) =>
        [source, (signal: AbortSignal) => source.batchData(mode, batchNumber, signal)] as const,
    );
    if (mode === "validium") return elsewhere;
    if (blobs === undefined) return [[L1, () => this.#l1.rollupData(txHash)], ...elsewhere];
    // Each source adds the blobs that it has to those of the sources before it.
    const found = new Map<Hash, Uint8Array>();
    const inBlobs = blobSources.map(
      (source) =>
        [
          source,
          (signal: AbortSignal) => this.#gather(source, commit, blobs, found, signal),
        ] as const,
    );
    return [...inBlobs, ...elsewhere];
  }

  async #gather(
    source: BlobSource,
    { blockNumber, vaultCount }: CommittedBatch,
    { assets, versionedHashes }: CommittedBlobs,
    found: Map<Hash, Uint8Array>,
    signal: AbortSignal,
  ): Promise<Uint8Array | null> {
    const wanted = new Set(versionedHashes.filter((hash) => !found.has(hash)));
    const place = {
      beaconBlock: await beaconBlockOf(blockNumber, this.#l1),
      versionedHashes: [...wanted],
    };
    for (const blob of await source.blobs(place, signal)) {
      if (wanted.size === 0) break;
      const hash = versionedHash(await this.#kzg.commitment(blob));
      if (wanted.delete(hash)) found.set(hash, blob);
    }
    if (wanted.size > 0) return null;
    const elements = new Uint8Array(versionedHashes.length * BLOB_BYTES);
    for (const [i, hash] of versionedHashes.entries())
      elements.set(found.get(hash) as Uint8Array, i * BLOB_BYTES);
    return blobBatchData({ vaultCount, assets, elements });
  }
}

/**
 * The committed batch that this data makes. Rejects with `validation_failed` for other data, by KZG
 * for blobs.
 *
 * @param derive - as {@link deriveCommitted}
 */
export async function checkedBatch<B extends BatchContent>(
  commit: CommittedBatch,
  data: Uint8Array,
  kzg: Kzg,
  registry: Registry,
  derive: (commit: CommittedPlace, data: Uint8Array) => B | Promise<B>,
): Promise<B> {
  const { mode, batchNumber, blobs } = commit;
  let batch = await derive(commit, data);
  if (mode === "validium" && !isBatch(batch, commit)) {
    const unnamed = await unregistered(batch.assets, commit, registry);
    if (unnamed.length > 0) batch = await derive({ ...commit, unnamed }, data);
  }
  if (
    isBatch(batch, commit) &&
    (blobs === undefined || (await hasBlobs(data, blobs.versionedHashes, kzg)))
  )
    return batch;
  throw invalid(`the data does not match batch ${mode}-${batchNumber} on L1`);
}

/**
 * Places of the assets that L1 had not registered at the commit. L1 takes no manifest that names
 * them, but a committee can hide their vaults beside others. They pay nobody, and the others pay.
 */
async function unregistered(
  assets: readonly AssetId[],
  { sequence }: CommittedBatch,
  registry: Registry,
): Promise<number[]> {
  // A registration tells for ever since when it counts, so the newest state is enough.
  const registrations = assets.length === 0 ? [] : await registry.registrations(assets);
  return [...registrations.entries()].flatMap(([place, found]) =>
    found === null || found.since > sequence ? [place] : [],
  );
}

/** The next block names the beacon block of this one. */
async function beaconBlockOf(blockNumber: bigint, l1: Pick<L1Reader, "block">): Promise<Hash> {
  const root = (await l1.block(blockNumber + 1n))?.parentBeaconBlockRoot;
  if (root !== undefined && BigInt(root) !== 0n) return root;
  return (await requireBlock(l1, blockNumber)).hash;
}
