import { MintmarkError } from "../errors.ts";
import type { AssetId } from "../ports.ts";
import { compareAssets } from "../protocol/manifest.ts";
import type { BatchRecord } from "../store/records.ts";

/** Manifest places of the assets that L1 leaves out of a batch. */
export function leftOutPlaces({ leftOut }: Pick<BatchRecord, "leftOut">): number[] {
  return leftOut?.map(({ asset }) => asset) ?? [];
}

/** Why L1 leaves an asset out of a batch; null when it does not. */
export function leftOutFailure({ assets, leftOut }: BatchRecord, asset: AssetId): string | null {
  return leftOut?.find(({ asset: at }) => compareAssets(assets?.[at] as AssetId, asset) === 0)?.failure ?? null;
}

/** Throws `vault_void` for a vault whose asset L1 leaves out of the batch. */
export function requireNotLeftOut(batch: BatchRecord, asset: AssetId): void {
  const failure = leftOutFailure(batch, asset);
  if (failure !== null) throw new MintmarkError("vault_void", `The vault pays nobody: ${failure}`);
}
