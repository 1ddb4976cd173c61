import type { AssetId } from "../ports.ts";
import type { WordBatch } from "../protocol/batch-data.ts";
import { compareAssets, MAX_BATCH_ASSETS } from "../protocol/manifest.ts";
import { Words } from "../protocol/words.ts";
import type { VaultColumns } from "../store/vault-columns.ts";

export type AssetIdAt = (assetIndex: number) => AssetId;

/**
 * Same result as `wordBatch`, straight from columns.
 *
 * @param voids - 1 for each void slot; null when there is none
 * @param manifest - the assets of the whole batch, where the columns are a part of it
 */
export function columnWords(
  vaults: VaultColumns,
  assetAt: AssetIdAt,
  voids: Uint8Array | null = null,
  manifest: readonly AssetId[] | null = null,
): WordBatch {
  const { count, assetIndex, amountHigh, amountLow, mintingBlobs, mintingBlobEnd } = vaults;
  const assets = manifest ?? manifestOf(vaults, assetAt, voids);
  const places = new Map(
    vaults.assetIndices().map((index) => [index, placeOf(assets, assetAt(index))]),
  );
  const words = new Words(count);
  let [lastAsset, place] = [-1, -1];
  for (let slot = 0, start = 0; slot < count; slot++) {
    const end = mintingBlobEnd[slot]!;
    if (voids?.[slot] === 1) words.addVoid();
    else {
      if (assetIndex[slot] !== lastAsset) {
        lastAsset = assetIndex[slot]!;
        place = places.get(lastAsset)!;
      }
      const { owner } = vaults.holderOf(slot);
      words.add(place, owner, amountHigh[slot]!, amountLow[slot]!, mintingBlobs, start, end);
    }
    start = end;
  }
  return { assets, words };
}

const placeOf = (assets: readonly AssetId[], asset: AssetId) =>
  assets.findIndex((each) => compareAssets(each, asset) === 0);

/** The assets of the vaults that are not void, in a manifest's order. */
function manifestOf(
  { count, assetIndex }: VaultColumns,
  assetAt: AssetIdAt,
  voids: Uint8Array | null,
): AssetId[] {
  const used = new Set<number>();
  for (let slot = 0; slot < count; slot++) if (voids?.[slot] !== 1) used.add(assetIndex[slot]!);
  if (used.size > MAX_BATCH_ASSETS)
    throw new Error("a batch of more assets than its manifest can name");
  const assets = [...used].map(assetAt).map(({ chainId, assetType }) => ({ chainId, assetType }));
  return assets.sort(compareAssets);
}
