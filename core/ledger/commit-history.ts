import { type Hash, MODES, type Mode } from "../model.ts";
import type { PortalIdentity } from "../ports.ts";
import { countOf, emptyHistory, nextHistory, type StateCounts } from "../protocol/commitment.ts";
import { bytesToHex } from "../protocol/hex.ts";
import type { StateTree } from "../protocol/state-tree.ts";
import type { Table, TwoViews } from "../store/group.ts";
import type { BatchRecord } from "../store/records.ts";

/** The batches that this store has recorded. */
interface RecordedBatches {
  readonly records: Readonly<Record<Mode, Table<number, BatchRecord>>>;
  readonly histories: Readonly<Record<Mode, TwoViews<StateTree>>>;
}

/** The history after a number of commits of each mode. */
interface End extends StateCounts {
  readonly history: Hash;
}

/**
 * The rolling hash over the batches that L1 has committed, in L1's order (docs/protocol.md 3). It
 * comes from this store's batches, so it can be compared with L1's. Hashes only new commits. A
 * reorganisation goes back to the final ones.
 */
export class CommitHistory {
  #final: End | null = null;
  #newest: End | null = null;

  /** The readers' view. */
  of(settlement: PortalIdentity, recorded: RecordedBatches): Hash {
    this.#final = extend(
      recorded,
      this.#final ?? startOf(settlement),
      ({ status }) => status === "finalized",
    );
    this.#newest = extend(recorded, this.#newest ?? this.#final, () => true);
    return this.#newest.history;
  }

  /** Drops what a changed batch makes wrong. */
  changed(before: BatchRecord | undefined, after: BatchRecord): void {
    if (
      before === undefined ||
      before.l1Sequence === null ||
      before.l1Sequence === after.l1Sequence
    )
      return;
    this.#newest = null;
    if (before.status === "finalized") this.#final = null;
  }
}

function startOf(settlement: PortalIdentity): End {
  return { countValidium: 0, countRollup: 0, history: emptyHistory(settlement) };
}

function extend(
  recorded: RecordedBatches,
  from: End,
  counts: (batch: BatchRecord) => boolean,
): End {
  let end = from;
  for (;;) {
    const sequence = BigInt(end.countValidium + end.countRollup);
    const next = (mode: Mode) => recorded.records[mode].durable.get(countOf(mode, end));
    const mode = MODES.find((each) => next(each)?.l1Sequence === sequence);
    const batch = mode && next(mode);
    if (mode === undefined || batch === undefined || !counts(batch)) return end;
    const leaf = bytesToHex(recorded.histories[mode].durable.leaf(batch.batchNumber));
    const counted = mode === "validium" ? "countValidium" : "countRollup";
    end = { ...end, [counted]: end[counted] + 1, history: nextHistory(end.history, mode, leaf) };
  }
}
