import { invalid, MintmarkError } from "../errors.ts";
import type { Series } from "../model.ts";
import type { AssetId } from "../ports.ts";
import { compareAssets } from "../protocol/manifest.ts";
import type { VaultPlace } from "../protocol/vault.ts";
import type { Group, Table } from "../store/group.ts";
import type { BatchRecord, VoidedRun, VoidRun } from "../store/records.ts";
import { requireText } from "../validate.ts";

/** The run that holds a slot; null when none does. Runs are ascending and do not overlap. */
export function runAt<R extends VoidRun>(runs: readonly R[], slot: number): R | null {
  let low = 0;
  for (let high = runs.length; low < high; ) {
    const middle = (low + high) >>> 1;
    if ((runs[middle] as R).firstSlot <= slot) low = middle + 1;
    else high = middle;
  }
  const run = runs[low - 1];
  return run !== undefined && slot < run.firstSlot + run.count ? run : null;
}

type VoidTables = Readonly<Record<Series, Pick<Table<number, readonly VoidedRun[]>, "view">>>;

/** Why a place is void, and since when; null when it is not. */
export function voidRunAt(
  voids: VoidTables,
  { mode, batchNumber, slot }: VaultPlace,
  group: Group | null,
): VoidedRun | null {
  return runAt(voids[mode].view(group).get(batchNumber) ?? [], slot);
}

/**
 * Void slots of the batch that holds this slot; the slot itself is not void. Throws `vault_void`
 * when it is.
 */
export function requireNotVoid(
  voids: VoidTables,
  { mode, batchNumber, slot }: VaultPlace,
  group: Group | null,
): readonly VoidedRun[] {
  const runs = voids[mode].view(group).get(batchNumber) ?? [];
  const run = runAt(runs, slot);
  if (run !== null) throw new MintmarkError("vault_void", `The vault is void: ${run.failure}`);
  return runs;
}

/**
 * The runs that make all of `asked` void too, ascending. Throws `validation_failed` for slots
 * outside of the batch.
 */
export function addedRuns(
  known: readonly VoidRun[],
  asked: readonly VoidRun[],
  vaultCount: number,
): VoidRun[] {
  const failures = new Map<number, string>();
  for (const { firstSlot, count, failure } of asked) {
    const whole =
      Number.isInteger(firstSlot) && Number.isInteger(count) && firstSlot >= 0 && count >= 1;
    if (!whole || firstSlot + count > vaultCount)
      throw invalid(`slots must be within the batch's ${vaultCount}`);
    const reason = requireText("failure", failure, 2000);
    for (let slot = firstSlot; slot < firstSlot + count; slot++) {
      if (runAt(known, slot) === null) failures.set(slot, reason);
    }
  }
  return runsOf([...failures].sort(([a], [b]) => a - b));
}

export function mergedRuns<R extends VoidRun>(known: readonly R[], added: readonly R[]): R[] {
  return [...known, ...added].sort((a, b) => a.firstSlot - b.firstSlot);
}

/** The runs of failed slots, which are ascending. */
export function runsOf(failures: readonly (readonly [slot: number, failure: string])[]): VoidRun[] {
  const runs: { firstSlot: number; count: number; failure: string }[] = [];
  for (const [slot, failure] of failures) {
    const last = runs.at(-1);
    if (last !== undefined && last.firstSlot + last.count === slot && last.failure === failure)
      last.count++;
    else runs.push({ firstSlot: slot, count: 1, failure });
  }
  return runs;
}

/** The runs whose words are zero. Slots of assets that L1 leaves out keep theirs. */
export function zeroRuns<R extends VoidRun & { readonly leftOut?: boolean }>(
  runs: readonly R[],
): readonly R[] {
  return runs.filter(({ leftOut = false }) => !leftOut);
}

/** 1 for each void slot; null when there is none. */
export function voidMask(runs: readonly VoidRun[], vaultCount: number): Uint8Array | null {
  if (runs.length === 0) return null;
  const mask = new Uint8Array(vaultCount);
  for (const { firstSlot, count } of runs) mask.fill(1, firstSlot, firstSlot + count);
  return mask;
}

/** Consecutive slots of a batch, and why L1 refuses them. */
export interface VoidSlots {
  readonly firstSlot: number;
  readonly count: number;
  /** 1 to 2000 characters; the application reads it. */
  readonly failure: string;
}

/** Manifest places of the assets that L1 leaves out of a batch. */
export function leftOutPlaces({ leftOut }: Pick<BatchRecord, "leftOut">): number[] {
  return leftOut?.map(({ asset }) => asset) ?? [];
}

/** Why L1 leaves an asset out of a batch; null when it does not. */
export function leftOutFailure({ assets, leftOut }: BatchRecord, asset: AssetId): string | null {
  return (
    leftOut?.find(({ asset: at }) => compareAssets(assets?.[at] as AssetId, asset) === 0)
      ?.failure ?? null
  );
}

/** Throws `vault_void` for a vault whose asset L1 leaves out of the batch. */
export function requireNotLeftOut(batch: BatchRecord, asset: AssetId): void {
  const failure = leftOutFailure(batch, asset);
  if (failure !== null) throw new MintmarkError("vault_void", `The vault pays nobody: ${failure}`);
}
