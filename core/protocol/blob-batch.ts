import { MintmarkError } from "../errors.ts";
import type { Hash } from "../model.ts";
import type { AssetId } from "../ports.ts";
import { ASSET_ENTRY_BYTES, BatchDataError, BatchInput, type VaultEntry } from "./batch-data.ts";
import {
  type DecodedBatch,
  type DecodeOptions,
  decodeBatchData,
  readAssets,
} from "./batch-decoder.ts";
import { requireInteger } from "./bounds.ts";
import {
  ELEMENT_BYTES,
  type ElementVault,
  elementCount,
  encodeElements,
  ownerOf,
  readElements,
} from "./elements.ts";
import { bytesToHex, HASH_BYTES, hashOf, hexToBytes, keccak256, packed } from "./hex.ts";
import { compareAssets, MAX_BATCH_ASSETS, requireManifest } from "./manifest.ts";

/**
 * The first byte of the data of a blob batch. Data for calldata and committees begins with 0x01.
 */
const BLOB_DATA_VERSION = 0x02;
export const BLOB_ELEMENTS = 4096;
export const BLOB_BYTES = BLOB_ELEMENTS * ELEMENT_BYTES;
/** Most blobs of one batch, since a transaction takes no more. */
const MAX_BATCH_BLOBS = 6;
/** Most slots of a blob batch. */
export const MAX_BLOB_VAULTS = MAX_BATCH_BLOBS * BLOB_ELEMENTS;

/** version 1, vault count 4, asset count 2. */
const HEAD_BYTES = 7;
const CONTENT_PREFIX = 0x0a;

/** A batch whose vaults are field elements of EIP-4844 blobs. */
export interface BlobBatch {
  /** Slots, void ones included: 1 to 24,576. */
  readonly vaultCount: number;
  /** The batch's manifest. */
  readonly assets: readonly AssetId[];
  /** The blobs, one behind the other: 32 bytes an element, 4096 elements a blob. */
  readonly elements: Uint8Array;
}

/**
 * Encodes slots as elements: heads first, continuations behind them.
 *
 * @param slots - in order; null for a void one
 * @throws MintmarkError `batch_too_large` when six blobs do not hold them, or no element holds a
 *   minting blob
 *
 * @example
 * const data = blobBatchData(encodeBlobBatch(slots));
 * const vaults = placeVaults(decodeBlobBatch(data).slots, "zk-rollup", 12);
 */
export function encodeBlobBatch(slots: readonly (VaultEntry | null)[]): BlobBatch {
  requireInteger("number of slots", slots.length, 1, MAX_BLOB_VAULTS);
  const keyOf = ({ chainId, assetType }: AssetId) => `${chainId} ${assetType.toLowerCase()}`;
  const distinct = new Map<string, AssetId>();
  let size = slots.length;
  for (const entry of slots) {
    if (entry === null) continue;
    const { chainId, assetType, amount, blob } = entry;
    distinct.set(keyOf(entry), { chainId, assetType });
    size += Math.max(0, elementCount(amount, hexToBytes(blob)) - 1);
  }
  const assets = [...distinct.values()].sort(compareAssets);
  if (assets.length > MAX_BATCH_ASSETS || size > MAX_BLOB_VAULTS)
    throw new MintmarkError("batch_too_large");
  const places = new Map(assets.map((asset, place) => [keyOf(asset), place]));
  const elements = new Uint8Array(Math.ceil(size / BLOB_ELEMENTS) * BLOB_BYTES);
  let continuation = slots.length;
  for (const [slot, entry] of slots.entries()) {
    if (entry === null) continue;
    const { amount } = entry;
    const [owner, blob] = [hexToBytes(entry.owner, 20), hexToBytes(entry.blob)];
    const assetIndex = places.get(keyOf(entry)) as number;
    const { head, rest } = encodeElements({ assetIndex, owner, amount, blob }, continuation);
    elements.set(head, slot * ELEMENT_BYTES);
    elements.set(rest, continuation * ELEMENT_BYTES);
    continuation += rest.length / ELEMENT_BYTES;
  }
  return { vaultCount: slots.length, assets, elements };
}

/**
 * The slots of a blob batch, each read by itself: null for a void one, and for an element that pays
 * nobody.
 *
 * @param standardOf - with it, the slots that L1 refuses for their asset's standard are null too
 *
 * @example
 * const vaults = placeVaults(blobSlots(readBlobBatchData(data)), "zk-rollup", 12);
 */
export function blobSlots(
  { vaultCount, assets, elements }: BlobBatch,
  standardOf?: DecodeOptions["standardOf"],
): (VaultEntry | null)[] {
  const standards = assets.map(
    ({ chainId, assetType }) => standardOf?.(chainId, assetType) ?? null,
  );
  return Array.from({ length: vaultCount }, (_, slot) => {
    const vault = readElements(elements, slot, vaultCount);
    const standard = standards[vault?.assetIndex ?? standards.length] ?? null;
    if (vault !== null && standard !== null) {
      const { amount, blob } = vault;
      const payable =
        (standard === "erc20") === (blob.length === 0) && (standard !== "erc721" || amount === 1n);
      if (!payable) return null;
    }
    return entryOf(vault, assets);
  });
}

/** Single slots of a blob batch, as `decodeSlots` returns those of batch data. */
export function blobSlotsAt(
  { vaultCount, assets, elements }: BlobBatch,
  slots: readonly number[],
  leftOut: readonly number[] = [],
): Map<number, VaultEntry> {
  const found = new Map<number, VaultEntry>();
  for (const slot of slots) {
    const vault = slot < vaultCount ? readElements(elements, slot, vaultCount) : null;
    const entry = entryOf(vault, assets);
    if (vault !== null && entry !== null && !leftOut.includes(vault.assetIndex))
      found.set(slot, entry);
  }
  return found;
}

/** null for a void slot, and for a vault of an asset that the manifest lacks. */
function entryOf(vault: ElementVault | null, assets: readonly AssetId[]): VaultEntry | null {
  const asset = assets[vault?.assetIndex ?? assets.length];
  if (vault === null || asset === undefined) return null;
  const { chainId, assetType } = asset;
  return {
    chainId,
    owner: ownerOf(vault),
    assetType,
    amount: vault.amount,
    blob: bytesToHex(vault.blob),
  };
}

/**
 * A blob batch as members, servers and archives keep it: `0x02 ‖ vaultCount(4) ‖ assetCount(2) ‖
 * assets ‖ blobs`.
 *
 * @example
 * await writeFile("zk-rollup-12", blobBatchData(encodeBlobBatch(slots)));
 */
export function blobBatchData({ vaultCount, assets, elements }: BlobBatch): Uint8Array {
  const manifest = packAssets(assets);
  const sizes = [1, 4, 2, manifest.length, elements.length];
  return packed(sizes, BLOB_DATA_VERSION, vaultCount, assets.length, manifest, elements);
}

/**
 * Whether data is that of a blob batch, by its first byte.
 *
 * @example
 * const { slots } = isBlobBatchData(data) ? decodeBlobBatch(data) : decodeBatch(data);
 */
export function isBlobBatchData(data: Uint8Array): boolean {
  return data[0] === BLOB_DATA_VERSION;
}

/**
 * The parts of {@link blobBatchData}. The blobs are a view of `data`. Only their commitments show
 * that L1 has committed them.
 *
 * @throws BatchDataError with the reason and the offset
 *
 * @example
 * const blobs = blobsIn(readBlobBatchData(data));
 */
export function readBlobBatchData(data: Uint8Array): BlobBatch {
  const input = new BatchInput(data);
  if (!isBlobBatchData(data)) throw input.refusal("version_unknown");
  input.skip(1);
  const vaultCount = input.number(4);
  const assets = readAssets(input);
  const elements = data.subarray(input.offset);
  if (vaultCount < 1) throw new BatchDataError("no_run", 1);
  if (vaultCount > MAX_BLOB_VAULTS || elements.length > MAX_BATCH_BLOBS * BLOB_BYTES) {
    throw new BatchDataError("too_many_slots", 1);
  }
  if (elements.length % BLOB_BYTES !== 0 || elements.length < vaultCount * ELEMENT_BYTES) {
    throw new BatchDataError("truncated", data.length);
  }
  return { vaultCount, assets, elements };
}

/**
 * The slots of a blob batch and its manifest, from its data; null for a slot that pays nobody.
 *
 * @throws BatchDataError with the reason and the offset
 *
 * @example
 * const vaults = placeVaults(decodeBlobBatch(data).slots, "zk-rollup", 0);
 */
export function decodeBlobBatch(
  data: Uint8Array,
  { maxSlots, standardOf }: DecodeOptions = {},
): DecodedBatch {
  const batch = readBlobBatchData(data);
  if (batch.vaultCount > (maxSlots ?? MAX_BLOB_VAULTS))
    throw new BatchDataError("too_many_slots", 1);
  for (const [i, { chainId, assetType }] of batch.assets.entries()) {
    if (standardOf !== undefined && !standardOf(chainId, assetType)) {
      throw new BatchDataError("asset_unregistered", HEAD_BYTES + i * ASSET_ENTRY_BYTES);
    }
  }
  return { slots: blobSlots(batch, standardOf), assets: batch.assets };
}

/**
 * The slots of a batch whose data the reader trusts, in calldata, blobs or with a committee. Throws
 * `BatchDataError`.
 */
export function trustedSlots(data: Uint8Array): readonly (VaultEntry | null)[] {
  return isBlobBatchData(data) ? decodeBlobBatch(data).slots : decodeBatchData(data);
}

/**
 * The blobs of a batch, as views.
 *
 * @example
 * const [first] = blobsIn(readBlobBatchData(data)); // 131,072 bytes
 */
export function blobsIn({ elements }: Pick<BlobBatch, "elements">): Uint8Array[] {
  return Array.from({ length: elements.length / BLOB_BYTES }, (_, i) =>
    elements.subarray(i * BLOB_BYTES, (i + 1) * BLOB_BYTES),
  );
}

/**
 * keccak-256 of a manifest's packed assets; part of a blob batch's content.
 *
 * @example
 * const content = blobContent(vaultCount, manifestHash(assets), versionedHashes);
 */
export function manifestHash(assets: readonly AssetId[]): Hash {
  return bytesToHex(keccak256(packAssets(assets)));
}

/**
 * The content of a blob batch: `keccak256(0x0a ‖ vaultCount(4) ‖ manifestHash(32) ‖
 * versionedHash(32)…)`. An element names its asset by a place in the manifest, so the content binds
 * the whole manifest.
 *
 * @throws MintmarkError `validation_failed` for a value out of bounds
 *
 * @example
 * const content = blobContent(vaultCount, manifestHash(assets), commitments.map(versionedHash));
 * const root = batchRoot("blobs", manifestRoot(assets), content);
 */
export function blobContent(
  vaultCount: number,
  manifestHash: Hash,
  versionedHashes: readonly Hash[],
): Hash {
  requireInteger("number of blobs", versionedHashes.length, 1, MAX_BATCH_BLOBS);
  requireInteger("number of slots", vaultCount, 1, versionedHashes.length * BLOB_ELEMENTS);
  const hashes = packed([HASH_BYTES], manifestHash, ...versionedHashes);
  return hashOf([1, 4, hashes.length], CONTENT_PREFIX, vaultCount, hashes);
}

/**
 * `chainId(8) ‖ assetType(32)` of each asset. Throws `validation_failed` unless they are a
 * manifest.
 */
function packAssets(assets: readonly AssetId[]): Uint8Array {
  requireManifest(assets);
  return packed(
    [8, HASH_BYTES],
    ...assets.flatMap(({ chainId, assetType }) => [chainId, assetType]),
  );
}
