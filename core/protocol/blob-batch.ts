import { MintmarkError } from "../errors.ts";
import type { Hash } from "../model.ts";
import type { AssetId } from "../ports.ts";
import {
  BatchDataError,
  BatchInput,
  type DecodedBatch,
  readAssets,
  readBatchData,
  slotsOf,
  type VaultEntry,
  type WordBatch,
  wordBatch,
} from "./batch-data.ts";
import { requireInteger } from "./bounds.ts";
import { bytesToHex, HASH_BYTES, hashOf, keccak256, packed } from "./hex.ts";
import { requireManifest } from "./manifest.ts";
import {
  CONTINUATION_BYTES,
  continuationsOf,
  placeIn,
  type VaultWords,
  WORD_BYTES,
  Words,
  writePlace,
} from "./words.ts";

/**
 * The first byte of the data of a blob batch. Data for calldata and committees begins with 0x01.
 */
const BLOB_DATA_VERSION = 0x02;
/** Bytes of a field element. */
export const ELEMENT_BYTES = WORD_BYTES;
export const BLOB_ELEMENTS = 4096;
export const BLOB_BYTES = BLOB_ELEMENTS * ELEMENT_BYTES;
/** Most blobs of one batch, since a transaction takes no more. */
const MAX_BATCH_BLOBS = 6;
/** Most slots of a blob batch. */
export const MAX_BLOB_VAULTS = MAX_BATCH_BLOBS * BLOB_ELEMENTS;

/** The first byte of an element with a continuation. */
const CONTINUATION = 0x0a;
const NO_CONTINUATION = new Uint8Array();

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
 * @throws MintmarkError `batch_too_large` when six blobs do not hold them
 *
 * @example
 * const data = blobBatchData(encodeBlobBatch(slots));
 * const vaults = placeVaults(decodeBlobBatch(data).slots, "zk-rollup", 12);
 */
export function encodeBlobBatch(slots: readonly (VaultEntry | null)[]): BlobBatch {
  requireInteger("number of slots", slots.length, 1, MAX_BLOB_VAULTS);
  return blobBatchOf(wordBatch(slots));
}

/** {@link encodeBlobBatch} of words. */
export function blobBatchOf({ assets, words }: WordBatch): BlobBatch {
  const { count } = words;
  const size = count + words.restBytes / CONTINUATION_BYTES;
  if (size > MAX_BLOB_VAULTS) throw new MintmarkError("batch_too_large");
  const elements = new Uint8Array(Math.ceil(size / BLOB_ELEMENTS) * BLOB_BYTES);
  elements.set(words.heads.subarray(0, count * ELEMENT_BYTES));
  let next = count;
  for (let slot = 0; slot < count && next < size; slot++) {
    const end = words.ends[slot]!;
    let at = words.startOf(slot);
    if (at < end) writePlace(elements, slot * ELEMENT_BYTES, next);
    for (; at < end; at += CONTINUATION_BYTES)
      elements.set(elementOf(words.rests, at / CONTINUATION_BYTES), next++ * ELEMENT_BYTES);
  }
  return { vaultCount: count, assets, elements };
}

/** The element of the continuation at `index`. */
export function elementOf(rests: Uint8Array, index: number): Uint8Array {
  const element = new Uint8Array(ELEMENT_BYTES);
  element[0] = CONTINUATION;
  element.set(rests.subarray(index * CONTINUATION_BYTES, (index + 1) * CONTINUATION_BYTES), 1);
  return element;
}

/**
 * The words of a blob batch, each slot read by itself. A slot whose continuations are not behind
 * the last slot, or are none, keeps its head only, which is no vault's then.
 */
export function wordsInBlobs({ vaultCount, assets, elements }: BlobBatch): WordBatch {
  const words = new Words(vaultCount);
  for (let slot = 0; slot < vaultCount; slot++) {
    const { head, rest } = elementWords({ vaultCount, elements }, slot);
    words.addSpelt(head, rest);
  }
  return { assets, words };
}

/**
 * The places of a slot's elements: what a proof of its vault opens. Place `p` is element `p mod
 * 4096` of blob `floor(p / 4096)`.
 *
 * @example
 * const openings = elementPlaces(batch, slot).map((place) => open(place));
 * const proof = openedProof(batch, vault, openings);
 */
export function elementPlaces(
  { elements }: Pick<BlobBatch, "elements">,
  slot: number,
): readonly number[] {
  const at = slot * ELEMENT_BYTES;
  const first = placeIn(elements, at);
  const more = continuationsOf(elements[at]!);
  return [slot, ...Array.from({ length: more }, (_, i) => first + i)];
}

function elementWords(batch: Pick<BlobBatch, "vaultCount" | "elements">, slot: number): VaultWords {
  const { vaultCount, elements } = batch;
  // A copy: the slice of a Buffer would be a view.
  const head = Uint8Array.from(elements.subarray(slot * ELEMENT_BYTES, (slot + 1) * ELEMENT_BYTES));
  const [, ...places] = elementPlaces(batch, slot);
  const rest = new Uint8Array(places.length * CONTINUATION_BYTES);
  for (const [i, place] of places.entries()) {
    const at = place * ELEMENT_BYTES;
    if (place < vaultCount || elements[at] !== CONTINUATION) return { head, rest: NO_CONTINUATION };
    rest.set(elements.subarray(at + 1, at + ELEMENT_BYTES), i * CONTINUATION_BYTES);
  }
  if (places.length > 0) writePlace(head, 0, 0);
  return { head, rest };
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
  if (vaultCount < 1) throw new BatchDataError("no_slot", 1);
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
export function decodeBlobBatch(data: Uint8Array): DecodedBatch {
  const read = wordsInBlobs(readBlobBatchData(data));
  return { ...read, slots: slotsOf(read) };
}

/**
 * The words of a batch's data, in calldata, in blobs or with a committee. Throws `BatchDataError`.
 */
export function wordsIn(data: Uint8Array): WordBatch {
  return isBlobBatchData(data) ? wordsInBlobs(readBlobBatchData(data)) : readBatchData(data);
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
