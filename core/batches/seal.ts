import { setImmediate as nextPass } from "node:timers/promises";
import { MintmarkError } from "../errors.ts";
import { tellSealed } from "../events/event-log.ts";
import { derivedBatch, isLong } from "../ledger/batch-vaults.ts";
import type { EngineContext } from "../ledger/context.ts";
import type { Ledger } from "../ledger/ledger.ts";
import { type OpenBatch, openBatchRecord } from "../ledger/open-batch.ts";
import { batchIdOf, MODES, type Mode } from "../model.ts";
import { bytesToHex } from "../protocol/hex.ts";
import type { BatchPlace } from "../protocol/vault.ts";
import { itemRecords } from "../sealing/batch-items.ts";
import { stateLeafOf } from "../sealing/contents.ts";
import { type CompleteRecords, deriveBatch, deriveTransfers } from "../sealing/derive-batch.ts";
import type { Group } from "../store/group.ts";
import type { BatchRecord } from "../store/records.ts";
import { keyOf } from "../store/store-keys.ts";
import { batchView, committedVaults } from "./batches.ts";

/** Opens the mode's next batch. Returns the one before it, which no mint reaches any more. */
export function closeOpenBatch(ledger: Ledger, group: Group, mode: Mode): OpenBatch {
  const closed = ledger.batches.unsealed.open(group, mode);
  const { batchNumber, firstOrdinal, vaults } = closed;
  const next = firstOrdinal + vaults.count;
  ledger.batches.open(mode, batchNumber + 1, next, ledger.journal.now(group));
  return closed;
}

/**
 * Takes the number of the mode's next batch for one without mints. Seals the open batch before it,
 * unless that is empty.
 */
export function openAhead(ledger: Ledger, group: Group, mode: Mode, vaultCount: number) {
  const earlier = sealOpen(ledger, group, mode);
  const { batchNumber, firstOrdinal } = ledger.batches.unsealed.open(group, mode);
  const now = ledger.journal.now(group);
  const taken = ledger.batches.open(mode, batchNumber, firstOrdinal, now);
  ledger.batches.open(mode, batchNumber + 1, firstOrdinal + vaultCount, now);
  return { taken, earlier };
}

/**
 * Throws `places_exhausted` when a mode has no places for that many more vaults, and `backpressure`
 * when they would exceed the limit of uncommitted ones.
 *
 * @param modes - a bit for each mode, by its position in `MODES`
 */
export function requireRoom(ledger: Ledger, group: Group, vaults: number, modes: number): void {
  const { uncommittedVaults: most, places } = ledger.services.limits;
  for (let i = 0; i < MODES.length; i++) {
    const { firstOrdinal, vaults: open } = ledger.batches.unsealed.open(group, MODES[i]!);
    if ((modes & (1 << i)) !== 0 && firstOrdinal + open.count + vaults > places)
      throw new MintmarkError("places_exhausted");
  }
  if (most === null) return;
  const waiting = MODES.reduce((sum, mode) => {
    const { firstOrdinal, vaults: open } = ledger.batches.unsealed.open(group, mode);
    return sum + firstOrdinal + open.count - committedVaults(ledger, mode, group);
  }, 0);
  if (waiting + vaults > most) throw new MintmarkError("backpressure");
}

/**
 * Closes the mode's open batch unless it is empty, and waits for its seal. Returns the batch. An
 * abort after the close has no effect. Rejects with `kzg_unavailable`; the engine seals the batch
 * as soon as KZG works.
 */
export async function sealOpenBatch(
  { ledger, writer }: EngineContext,
  mode: Mode,
  signal?: AbortSignal,
) {
  // Wrapped in an object, so that the writer does not wait for the promise.
  const { sealed } = await writer.alone(async (group) => {
    ledger.l1.requireOneHistory();
    return { sealed: Promise.resolve(sealOpen(ledger, group, mode)) };
  }, signal);
  // A batch in blobs waits while KZG is missing, and so do the batches behind it.
  const record = await (mode === "zk-rollup" ? ledger.batches.blobs.unlessFaulty(sealed) : sealed);
  return record && batchView(record);
}

/** Closes and seals the mode's open batch; null when it is empty. */
function sealOpen(ledger: Ledger, group: Group, mode: Mode) {
  const isEmpty = ledger.batches.unsealed.open(group, mode).vaults.count === 0;
  return isEmpty ? null : sealClosed(ledger, group, closeOpenBatch(ledger, group, mode));
}

/**
 * Seals a batch: at once if it is small and first, else after the thread. Until then its record is
 * an open batch's. A rollup batch goes into blobs if L1 is known to take them now.
 */
export function sealClosed(
  ledger: Ledger,
  group: Group,
  closed: OpenBatch,
): BatchRecord | Promise<BatchRecord> {
  const { inBlobs } = closed;
  if (
    !isLong({ inBlobs, vaultCount: closed.vaults.count }) &&
    !ledger.batches.sealings[closed.mode].has(closed.batchNumber - 1)
  ) {
    return sealBatch(ledger, group, closed, inBlobs, derivedHere(ledger, closed));
  }
  closed.flush(group);
  ledger.batches.putBatch(group, openBatchRecord(closed));
  return sealLater(ledger, closed, inBlobs);
}

/** Derives a closed batch that is not in blobs, where the caller runs. */
function derivedHere(ledger: Ledger, closed: OpenBatch): CompleteRecords {
  const assetAt = (index: number) => ledger.tenants.assetAt(index);
  const { mode, batchNumber, vaults, transfers } = closed;
  if (transfers !== null) return deriveTransfers(batchNumber, transfers, vaults, assetAt);
  return deriveBatch({ mode, batchNumber }, vaults, assetAt);
}

/** Derives a closed batch on the thread, then seals it after the batches before it. */
export function sealLater(
  ledger: Ledger,
  closed: OpenBatch,
  inBlobs = closed.inBlobs,
): Promise<BatchRecord> {
  const { mode, batchNumber } = closed;
  const sealings = ledger.batches.sealings[mode];
  const before = sealings.get(batchNumber - 1);
  // One commit carries fewer transfers than mints, so they take the event loop for some ms only.
  const derived =
    closed.transfers === null
      ? derivedBatch(ledger, { mode, batchNumber, inBlobs }, closed.vaults)
      : nextPass().then(() => derivedHere(ledger, closed));
  const sealed = Promise.allSettled([derived, before]).then(([outcome]) =>
    ledger.writer.run({
      weight: 1,
      // Otherwise a later batch could take this one's place in the state tree.
      isOwed: true,
      keys: () => [],
      apply(group) {
        // No code: the engine must stop, since later batches cannot be sealed before this one.
        if (outcome.status === "rejected")
          throw new Error(`${batchIdOf(mode, batchNumber)} cannot be derived`, {
            cause: outcome.reason,
          });
        return sealBatch(ledger, group, closed, inBlobs, outcome.value);
      },
    }),
  );
  sealings.set(batchNumber, sealed);
  // A failure here means that the writer failed or closed. The writer reports that.
  sealed.catch(() => {}).finally(() => sealings.delete(batchNumber));
  return sealed;
}

/** Journals a closed batch, and writes its derived records and its place in the state tree. */
function sealBatch(
  ledger: Ledger,
  group: Group,
  closed: OpenBatch,
  inBlobs: boolean,
  derived: CompleteRecords,
): BatchRecord {
  const { mode, batchNumber, mintCount } = closed;
  const vaultCount = closed.vaults.count;
  const { assets, content, batchRoot, dataHash } = derived;
  const history = ledger.batches.histories[mode].view(group);
  if (history.count !== batchNumber)
    throw new Error(`batch ${batchNumber} is sealed at place ${history.count}`);
  history.append(stateLeafOf({ batchNumber, vaultCount, dataHash, batchRoot }));
  const stateRoot = bytesToHex(history.root());
  const roots = { batchRoot, dataHash, stateRoot };
  const { time } = ledger.journal.record(group, {
    kind: "batchSealed",
    mode,
    batchNumber,
    vaultCount,
    mintCount,
    inBlobs,
    ...roots,
  });
  closed.flush(group);
  const sealed = { status: "sealed", inBlobs, assets, content, ...roots, sealedAt: time } as const;
  const record: BatchRecord = { ...openBatchRecord(closed), ...sealed };
  putDerived(group, closed, derived);
  for (const { key, value } of itemRecords(derived.items)) group.put(key, value);
  ledger.batches.putBatch(group, record);
  tellSealed(ledger, group, record, closed.vaults, time);
  group.onDurable(() => {
    ledger.batches.unsealed.release(closed);
    ledger.services.emit("batch", { type: "batch.sealed", batch: batchView(record) });
  });
  return record;
}

/** Writes the records of a batch that are not ids of tokens. */
export function putDerived(
  group: Group,
  { mode, batchNumber }: BatchPlace,
  { data, pageRoots, tokens }: CompleteRecords,
): void {
  group.put(keyOf.batchData(mode, batchNumber), data);
  group.put(keyOf.pageRoots(mode, batchNumber), pageRoots);
  group.put(keyOf.batchTokens(mode, batchNumber), tokens);
}
