import { VaultColumns, type VaultParts } from "../store/vault-columns.ts";
import { HelperThread } from "../thread.ts";
import type {
  AssetAt,
  BatchToDerive,
  DerivedAsset,
  DerivedVoid,
  DerivingResult,
} from "./derive-batch.ts";
import { deriveBatch } from "./derive-batch.ts";

export interface SealingJob {
  readonly batch: BatchToDerive;
  readonly vaults: VaultParts;
  readonly assets: ReadonlyMap<number, DerivedAsset>;
  readonly voids: readonly DerivedVoid[];
}

// Most batches that wait for the thread before the writer waits too. Bounds their memory.
const MAX_WAITING = 4;
/** Beside the source file, or beside its compiled form. */
const WORKER = new URL(
  `./sealing-worker.${import.meta.url.endsWith(".ts") ? "ts" : "js"}`,
  import.meta.url,
);

/**
 * Derives closed batches on a thread, which takes as long as minting them. At a stop, the next
 * opening does the rest.
 */
export class SealingThread extends HelperThread<SealingJob, DerivingResult> {
  #letOn: (() => void) | null = null;
  // Resolves when another batch may be closed; null when it may be now
  room: Promise<void> | null = null;

  constructor(script: URL = WORKER) {
    super(script, "mintmark-sealing", derivedOf);
  }

  /**
   * The derived records of a closed batch. Rejects with `engine_closed` when the engine closes
   * first.
   */
  derive<B extends BatchToDerive>(
    place: B,
    vaults: VaultColumns,
    assetAt: AssetAt,
    voids: readonly DerivedVoid[] = [],
  ) {
    const assets = new Map(vaults.assetIndices().map((index) => [index, assetAt(index)]));
    const { mode, batchNumber, inBlobs = false } = place;
    const derived = this.ask({
      batch: { mode, batchNumber, inBlobs },
      vaults: vaults.parts(),
      assets,
      voids,
    });
    if (this.waiting >= MAX_WAITING && this.room === null)
      ({ promise: this.room, resolve: this.#letOn } = Promise.withResolvers<void>());
    return derived as Promise<DerivingResult<B>>;
  }

  protected override answered(): void {
    if (this.waiting >= MAX_WAITING) return;
    this.#letOn?.();
    this.room = null;
  }
}

export function derivedOf({ batch, vaults, assets, voids }: SealingJob): DerivingResult {
  return deriveBatch(
    batch,
    VaultColumns.of(vaults),
    (index) => assets.get(index) as DerivedAsset,
    voids,
  );
}
