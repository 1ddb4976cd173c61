import type { Mode } from "../model.ts";
import { BatchDataError } from "../protocol/batch-data.ts";
import { isTransferData } from "../protocol/transfer-data.ts";
import { HelperThread } from "../thread.ts";
import {
  type BatchContent,
  type CommittedPlace,
  type DeriveOptions,
  deriveBatch,
  optionsOf,
  type PackedBatch,
  packBatch,
  unpackBatch,
} from "./derive.ts";

interface DerivingJob {
  readonly mode: Mode;
  readonly batchNumber: number;
  readonly data: Uint8Array;
  readonly options: DeriveOptions;
}

/** Shorter data is derived on the caller's thread, in some ms: so few vaults pay for no other. */
const SHORT_BYTES = 4_096;
/** Beside the source file, or beside its compiled form. */
const WORKER = new URL(
  `./deriving-worker.${import.meta.url.endsWith(".ts") ? "ts" : "js"}`,
  import.meta.url,
);

/** Derives batches from their data on a thread, which starts with the first long one. */
export class DerivingThread extends HelperThread<DerivingJob, PackedBatch> {
  /** @param script - the thread's code; default this library's own */
  constructor(script: URL = WORKER) {
    super(script, "mintmark-deriving", packedOf, [BatchDataError]);
  }

  /** Runs `deriveBatch`, without what proves the vaults. Rejects with `engine_closed`. */
  async derive(
    mode: Mode,
    batchNumber: number,
    data: Uint8Array,
    options: DeriveOptions = {},
  ): Promise<BatchContent> {
    this.requireOpen();
    const areTransfers = options.versionedHashes === undefined && isTransferData(mode, data);
    if (areTransfers || data.length < SHORT_BYTES)
      return deriveBatch(mode, batchNumber, data, options);
    // A view of a larger memory would be copied with all of it.
    const own = data.length === data.buffer.byteLength ? data : Uint8Array.from(data);
    const packed = await this.ask({ mode, batchNumber, data: own, options });
    return unpackBatch(mode, batchNumber, packed);
  }

  /** Runs `deriveCommitted`, without what proves the vaults. */
  deriveCommitted(commit: CommittedPlace, data: Uint8Array): Promise<BatchContent> {
    return this.derive(commit.mode, commit.batchNumber, data, optionsOf(commit));
  }
}

export function packedOf({ mode, batchNumber, data, options }: DerivingJob): PackedBatch {
  return packBatch(mode, batchNumber, data, options);
}
