import type { WaitOptions } from "../abort.ts";
import { MintmarkError } from "../errors.ts";
import { readBatchVaults, recordsAgain } from "../ledger/batch-vaults.ts";
import type { Ledger } from "../ledger/ledger.ts";
import type { Batch, Hash, Mode } from "../model.ts";
import type { AssetId } from "../ports.ts";
import { batchRoot, compareAssets, kindOf, manifestRoot } from "../protocol/manifest.ts";
import { addedRuns, leftOutFailure, leftOutPlaces, mergedRuns } from "../sealing/void-runs.ts";
import type { Group } from "../store/group.ts";
import type { BatchRecord, LeftOutAsset, VoidRun } from "../store/records.ts";
import { batchTokensKey } from "../store/store-keys.ts";
import { requireText } from "../validate.ts";
import { batchView, latestUncommitted } from "./batches.ts";
import { failSlots, pendingIn, putRoots } from "./void-slots.ts";

/**
 * Records which assets L1 leaves out of a sealed batch's manifest, in place of earlier ones. Batch root and later state
 * roots change; vaults, data and the vault tree do not. The mints fail only when the commit is final.
 */
export function setLeftOut(ledger: Ledger, group: Group, batch: BatchRecord, assets: readonly LeftOutAsset[]) {
  const { mode, batchNumber, assets: named, content, dataHash, inBlobs, transfers } = batch;
  if (named === null || content === null || dataHash === null)
    throw new MintmarkError("proof_not_ready", "The batch is still open.");
  const leftOut = assets.length === 0 ? null : assets;
  const manifest = manifestRoot(named, leftOutPlaces({ leftOut }));
  const resealed = putRoots(ledger, group, {
    ...batch,
    leftOut,
    batchRoot: batchRoot(kindOf(mode, inBlobs, transfers), manifest, content),
  });
  const roots = { batchRoot: resealed.batchRoot as Hash, dataHash, stateRoot: resealed.stateRoot };
  ledger.record(group, { kind: "assetsLeftOut", mode, batchNumber, assets, ...roots });
  return resealed;
}

/** The same before the commit, for an operator who knows which consents are missing. Throws `batch_committed`. */
export async function leaveOut(
  ledger: Ledger,
  mode: Mode,
  batchNumber: number,
  assets: readonly LeftOut[],
  wait?: WaitOptions,
): Promise<Batch> {
  const record = await ledger.writer.alone(async (group) => {
    const batch = latestUncommitted(ledger, mode, batchNumber);
    const leftOut = placesOf(batch, assets);
    const same = JSON.stringify(leftOut) === JSON.stringify(batch.leftOut ?? []);
    return same ? batch : setLeftOut(ledger, group, batch, leftOut);
  }, wait?.signal);
  return batchView(record);
}

/** Assets by their manifest places, ascending. Throws `validation_failed` for a place that the manifest lacks. */
export function placesOf(batch: BatchRecord, assets: readonly LeftOut[]): LeftOutAsset[] {
  return assets
    .map((each) => {
      const asset = (batch.assets ?? []).findIndex((known) => compareAssets(known, each) === 0);
      if (asset < 0) throw new MintmarkError("validation_failed", `the batch holds no asset ${each.assetType}`);
      return { asset, failure: requireText("failure", each.failure, 2000) };
    })
    .sort((a, b) => a.asset - b.asset);
}

/** An asset of a batch, and why L1 leaves it out. */
export interface LeftOut extends AssetId {
  readonly failure: string; // 1 to 2000 characters; the application reads it
}

/** The batch is final, so mints of its left-out assets fail as in {@link voidSlots}. Data and roots stay. */
export async function failLeftOut(ledger: Ledger, group: Group, batch: BatchRecord): Promise<void> {
  const { mode, batchNumber } = batch;
  if (batch.leftOut === null) return;
  const vaults = await readBatchVaults(ledger, batch);
  const failures: (string | null | undefined)[] = [];
  const slots: VoidRun[] = [];
  for (let firstSlot = 0; firstSlot < vaults.count; firstSlot++) {
    const assetIndex = vaults.assetIndex[firstSlot] as number;
    if (failures[assetIndex] === undefined) failures[assetIndex] = leftOutFailure(batch, ledger.assetAt(assetIndex));
    const failure = failures[assetIndex] ?? null;
    if (failure !== null) slots.push({ firstSlot, count: 1, failure });
  }
  const known = ledger.voids[mode].latest(batchNumber) ?? [];
  const added = addedRuns(known, slots, batch.vaultCount);
  if (added.length === 0) return;
  const pending = await pendingIn(ledger, mode, batchNumber, added);
  const { time } = ledger.record(group, { kind: "slotsLeftOut", mode, batchNumber, voids: added });
  const runs = mergedRuns(
    known,
    added.map((run) => ({ ...run, voidedAt: time, leftOut: true })),
  );
  ledger.putVoids(group, mode, batchNumber, runs);
  const { tokens } = await recordsAgain(ledger, batch, vaults, runs);
  group.put(batchTokensKey(mode, batchNumber), tokens);
  await failSlots(ledger, group, batch, vaults, added, pending);
}
