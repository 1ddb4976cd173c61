import { tellSealed } from "../events/event-log.ts";
import type { Ledger } from "../ledger/ledger.ts";
import { OpenBatch, openBatchRecord } from "../ledger/open-batch.ts";
import type { Batch, Mode } from "../model.ts";
import { bytesToHex } from "../protocol/hex.ts";
import { itemRecords } from "../sealing/batch-items.ts";
import { stateLeafOf } from "../sealing/contents.ts";
import { type DerivedBatch, deriveBatch } from "../sealing/derive-batch.ts";
import type { Group } from "../store/group.ts";
import type { BatchRecord } from "../store/records.ts";
import { batchDataKey, batchTokensKey, pageRootsKey } from "../store/store-keys.ts";
import { batchView } from "./batches.ts";

/** Opens the mode's next batch. No mint reaches the old one any more. */
export function closeOpenBatch(ledger: Ledger, mode: Mode): OpenBatch {
  const closed = ledger.unsealed.open(mode);
  const firstOrdinal = closed.firstOrdinal + closed.vaultCount;
  ledger.setOpen(
    new OpenBatch(mode, closed.batchNumber + 1, ledger.now(), firstOrdinal, ledger.limits, ledger.isForeign),
  );
  return closed;
}

/** Closes the mode's open batch unless it is empty, and waits for its seal. An abort after the close has no effect. */
export async function sealOpenBatch(ledger: Ledger, mode: Mode, signal?: AbortSignal): Promise<Batch | null> {
  // Wrapped in an object, so that the writer does not wait for the promise.
  const { sealed } = await ledger.writer.alone(async (group) => {
    ledger.requireOneHistory();
    const isEmpty = ledger.unsealed.open(mode).vaultCount === 0;
    return { sealed: isEmpty ? null : sealClosed(ledger, group, closeOpenBatch(ledger, mode)) };
  }, signal);
  const record = await sealed;
  return record === null ? null : batchView(record);
}

/** Smaller batches are sealed at once: that takes a millisecond or less. */
const OFF_LOOP_VAULTS = 1_024;

/**
 * Seals a closed batch: in this group when it is small and no earlier one waits, else after the thread has derived it.
 * Until then its record is that of an open batch, so the next opening goes on with it after a crash.
 */
export function sealClosed(ledger: Ledger, group: Group, closed: OpenBatch): BatchRecord | Promise<BatchRecord> {
  if (closed.vaultCount < OFF_LOOP_VAULTS && !ledger.sealings[closed.mode].has(closed.batchNumber - 1)) {
    return sealBatch(
      ledger,
      group,
      closed,
      deriveBatch(closed, closed.vaults, (index) => ledger.assetAt(index)),
    );
  }
  closed.flush(group);
  ledger.putBatch(group, openBatchRecord(closed));
  return sealLater(ledger, closed);
}

/** Derives a closed batch on the thread, then seals it after the batches before it. */
export function sealLater(ledger: Ledger, closed: OpenBatch): Promise<BatchRecord> {
  const { mode, batchNumber } = closed;
  const sealings = ledger.sealings[mode];
  const before = sealings.get(batchNumber - 1);
  const derived = ledger.sealingThread.derive(closed, closed.vaults, (index) => ledger.assetAt(index));
  const sealed = Promise.allSettled([derived, before]).then(([outcome]) =>
    ledger.writer.run({
      weight: 1,
      // Otherwise a later batch could take this one's place in the state tree.
      isOwed: true,
      keys: () => [],
      apply(group) {
        if (outcome.status === "rejected") throw outcome.reason;
        return sealBatch(ledger, group, closed, outcome.value);
      },
    }),
  );
  sealings.set(batchNumber, sealed);
  // A failure here means that the writer failed or closed. The writer reports that.
  sealed.catch(() => {}).finally(() => sealings.delete(batchNumber));
  return sealed;
}

/** Journals a closed batch, and writes its derived records and its place in the state tree. */
function sealBatch(ledger: Ledger, group: Group, closed: OpenBatch, derived: DerivedBatch): BatchRecord {
  const { mode, batchNumber, vaultCount, mintCount } = closed;
  const { assets, content, batchRoot, dataHash } = derived;
  const history = ledger.histories.latest(mode);
  if (history.count !== batchNumber) throw new Error(`batch ${batchNumber} is sealed at place ${history.count}`);
  history.append(stateLeafOf({ batchNumber, vaultCount, content, dataHash, batchRoot }));
  const stateRoot = bytesToHex(history.root());
  const roots = { batchRoot, dataHash, stateRoot };
  const { time } = ledger.record(group, { kind: "batchSealed", mode, batchNumber, vaultCount, mintCount, ...roots });
  closed.flush(group);
  group.put(batchDataKey(mode, batchNumber), derived.data);
  group.put(pageRootsKey(mode, batchNumber), derived.pageRoots);
  group.put(batchTokensKey(mode, batchNumber), derived.tokens);
  for (const { key, value } of itemRecords(derived.items)) group.put(key, value);
  const record: BatchRecord = {
    ...openBatchRecord(closed),
    status: "sealed",
    assets,
    content,
    ...roots,
    sealedAt: time,
  };
  ledger.putBatch(group, record);
  tellSealed(ledger, group, record, closed.vaults, time);
  group.onDurable(() => {
    ledger.unsealed.release(closed);
    ledger.emit("batchSealed", batchView(record));
  });
  return record;
}
