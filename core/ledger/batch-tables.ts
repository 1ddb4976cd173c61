import type { Limits, Mode } from "../model.ts";
import { StateTree } from "../protocol/state-tree.ts";
import { type Group, Table, TwoViews } from "../store/group.ts";
import { encodeRecord } from "../store/layout.ts";
import * as records from "../store/records.ts";
import { keyOf } from "../store/store-keys.ts";
import { CommitHistory } from "./commit-history.ts";
import { Makings } from "./makings.ts";
import { byMode, bySeries, OpenBatch, UnsealedBatches } from "./open-batch.ts";
import type { EngineOptions } from "./options.ts";
import { RollupBlobs } from "./rollup-blobs.ts";
import { VaultRefs } from "./vault-refs.ts";

/** The batches of both modes, and what follows from them. */
export class BatchTables {
  readonly makings = new Makings();
  readonly records = {
    ...byMode(() => new Table<number, records.BatchRecord>()),
    made: this.makings,
  };
  /** No slot of a making is void. */
  readonly voids = bySeries(() => new Table<number, readonly records.VoidedRun[]>());
  /**
   * The state trees over all sealed batches. Readers do not ask a tree for batches that are not on
   * disk.
   */
  readonly histories = byMode(() => new TwoViews(new StateTree()));
  readonly commits = new CommitHistory();
  readonly unsealed = new UnsealedBatches();
  /** Batches that are closed and not yet sealed on disk, by number. */
  readonly sealings = byMode(() => new Map<number, Promise<records.BatchRecord>>());
  readonly refs = new VaultRefs();
  readonly blobs: RollupBlobs;
  readonly #limits: Limits;
  readonly #isForeign: (assetIndex: number) => boolean;

  constructor(options: EngineOptions, limits: Limits, isForeign: (assetIndex: number) => boolean) {
    this.blobs = new RollupBlobs(options);
    this.#limits = limits;
    this.#isForeign = isForeign;
  }

  /**
   * Opens a batch, which takes mints from now on, and closes the mode's open one.
   *
   * @param firstOrdinal - vaults in the mode's earlier batches
   */
  open(mode: Mode, batchNumber: number, firstOrdinal: number, openedAt: number): OpenBatch {
    const batch = new OpenBatch(mode, batchNumber, openedAt, firstOrdinal, this.#limits, {
      isForeign: this.#isForeign,
      takesBlobs: () => this.blobs.kind === "blobs",
    });
    this.unsealed.setOpen(batch);
    this.refs.set(mode, batchNumber, firstOrdinal);
    return batch;
  }

  putVoids(
    group: Group,
    mode: Mode,
    batchNumber: number,
    runs: readonly records.VoidedRun[],
  ): void {
    this.voids[mode].put(group, batchNumber, runs);
    group.put(
      keyOf.voids(mode, batchNumber),
      encodeRecord(records.voidsRecord, { mode, batchNumber, runs }),
    );
  }

  putBatch(group: Group, record: records.BatchRecord): void {
    const before = this.records[record.mode].view(group).get(record.batchNumber);
    this.records[record.mode].put(group, record.batchNumber, record);
    group.onDurable(() => this.commits.changed(before, record));
    group.put(
      keyOf.batch(record.mode, record.batchNumber),
      encodeRecord(records.batchRecord, record),
    );
  }
}
