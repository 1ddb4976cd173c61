import { type ErrorCode, MintmarkError } from "../../errors.ts";
import type { ProposedBatch } from "../../ports.ts";
import { BatchDataError } from "../../protocol/batch-data.ts";
import { decodeBatchData } from "../../protocol/batch-decoder.ts";
import { tokenIdOf } from "../../protocol/blob.ts";
import { blobsIn, decodeBlobBatch, isBlobBatchData, readBlobBatchData } from "../../protocol/blob-batch.ts";
import { keccak256 } from "../../protocol/hash.ts";
import { bytesToHex } from "../../protocol/hex.ts";
import type { Kzg } from "../../protocol/kzg/kzg-thread.ts";
import { TransferDataError } from "../../protocol/transfer-data.ts";
import { type DerivedBatch, deriveBatch, isBatch, vaultsOf, versionedHashesOf } from "../archive/derive.ts";
import type { KnownAssets } from "../archive/known-assets.ts";
import { Refusal } from "./refusal.ts";

/** Most batches stored ahead of L1. An honest operator needs few; a hostile one would fill the disk. */
export const MAX_AHEAD = 16;

/**
 * Derives a batch from its data and compares the result with what the operator says, before any signature. A rollup batch
 * may be in blobs, whose commitments take about 50 ms each. Rejects with `kzg_unavailable` when they cannot be computed.
 *
 * @throws Refusal `data_hash`, `malformed`, or `root`
 */
export async function deriveProposed(batch: ProposedBatch, kzg: Pick<Kzg, "commitment">): Promise<DerivedBatch> {
  const { mode, batchNumber, dataHash, data } = batch;
  const inBlobs = mode === "zk-rollup" && isBlobBatchData(data);
  if (!inBlobs && bytesToHex(keccak256(data)) !== dataHash) throw badHash();
  const readHashes = () => versionedHashesOf(blobsIn(readBlobBatchData(data)), kzg);
  // An element outside of the field fails the validation.
  const versionedHashes = inBlobs ? await wellFormed(readHashes, "validation_failed") : undefined;
  const derived = await wellFormed(() => deriveBatch(mode, batchNumber, data, { versionedHashes }));
  if (isBatch(derived, batch)) return derived;
  if (derived.dataHash !== dataHash) throw badHash();
  throw new Refusal("root", `the data gives root ${derived.batchRoot} of ${derived.vaultCount} slots`);
}

function badHash(): Refusal {
  return new Refusal("data_hash", "the data does not have this hash");
}

/**
 * Checks every vault of a batch against the final registration of its asset, by L1's rules.
 *
 * @throws Refusal `unregistered`, or `malformed`
 */
export async function requireRegistered({ data }: ProposedBatch, derived: DerivedBatch, assets: KnownAssets) {
  const vaults = vaultsOf(derived);
  // A vault counts only if its asset was registered before its batch, and only final registrations are permanent.
  await assets.learn(vaults);
  await wellFormed(() => {
    for (const { chainId, assetType, blob } of vaults) {
      const asset = assets.known(chainId, assetType);
      if (asset === null) throw new Refusal("unregistered", `asset ${assetType} has no final registration on L1`);
      tokenIdOf(asset.standard, asset.blobScheme, blob);
    }
    // Derives again with each asset's standard, for amounts of ERC-721 and blobs of ERC-20.
    const standardOf = (chainId: bigint, assetType: `0x${string}`) =>
      assets.known(chainId, assetType)?.standard ?? null;
    if (derived.blobs === null) decodeBatchData(data, { standardOf });
    else decodeBlobBatch(data, { standardOf });
  });
}

/** Turns errors of the decoder or of a blob scheme into the refusal `malformed`. */
async function wellFormed<T>(work: () => T | Promise<T>, code: ErrorCode = "blob_invalid"): Promise<T> {
  try {
    return await work();
  } catch (error) {
    const malformed =
      error instanceof BatchDataError ||
      error instanceof TransferDataError ||
      (error instanceof MintmarkError && error.code === code);
    throw malformed ? new Refusal("malformed", error.message) : error;
  }
}
