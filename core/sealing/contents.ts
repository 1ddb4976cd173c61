import { MintmarkError } from "../errors.ts";
import type { Hash, Hex } from "../model.ts";
import type { VaultContent } from "../ports.ts";
import { blobContent, manifestHash, readBlobBatchData } from "../protocol/blob-batch.ts";
import { stateLeaf } from "../protocol/commitment.ts";
import { bytesToHex, hexToBytes } from "../protocol/hex.ts";
import { packVaultId, type VaultPlace } from "../protocol/vault.ts";
import { POINT_BYTES, versionedHash } from "../protocol/versioned-hash.ts";
import type { AssetRecord, BatchRecord } from "../store/records.ts";
import type { StoredVault } from "../store/vault-columns.ts";

/** The content that a slot's leaf commits to. */
export function contentOf(
  place: VaultPlace,
  vault: StoredVault,
  asset: Pick<AssetRecord, "chainId" | "assetType">,
): VaultContent {
  return {
    vaultId: packVaultId(place),
    chainId: asset.chainId,
    owner: vault.owner,
    assetType: asset.assetType,
    amount: vault.amount,
    mintingBlob: vault.mintingBlob,
  };
}

/** The leaf of a sealed batch in its mode's state tree. */
export function stateLeafOf(
  batch: Pick<BatchRecord, "batchNumber" | "vaultCount" | "dataHash" | "batchRoot">,
): Uint8Array {
  const { batchNumber, vaultCount, dataHash, batchRoot } = batch;
  if (dataHash === null || batchRoot === null)
    throw new MintmarkError("store_corrupt", "A sealed batch has no root.");
  return hexToBytes(stateLeaf({ batchNumber, vaultCount, dataHash, batchRoot }));
}

/** The content of a batch in blobs, from its data and the commitments to its blobs. */
export function contentIn(data: Uint8Array, commitments: readonly Hex[]): Hash {
  const { vaultCount, assets } = readBlobBatchData(data);
  return blobContent(vaultCount, manifestHash(assets), commitments.map(versionedHash));
}

/** Commitments that lie one behind the other. */
export function pointsIn(commitments: Uint8Array): Hex[] {
  return Array.from({ length: Math.floor(commitments.length / POINT_BYTES) }, (_, i) =>
    bytesToHex(commitments.subarray(i * POINT_BYTES, (i + 1) * POINT_BYTES)),
  );
}
