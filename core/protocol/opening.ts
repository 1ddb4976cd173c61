import { invalid } from "../errors.ts";
import type { Hash, Hex } from "../model.ts";
import type { VaultContent, VaultProof } from "../ports.ts";
import {
  BLOB_ELEMENTS,
  type BlobBatch,
  blobContent,
  elementOf,
  elementPlaces,
  manifestHash,
} from "./blob-batch.ts";
import { requireInteger } from "./bounds.ts";
import { bytesToHex, hexToBytes, packed, packHashes, unpackHashes, wordOf } from "./hex.ts";
import { verifyOpening } from "./kzg.ts";
import { batchRoot, manifestPath, manifestRootOf } from "./manifest.ts";
import { unpackBatchVaultId } from "./vault.ts";
import { type Opening, POINT_BYTES } from "./versioned-hash.ts";
import { CONTINUATION_BYTES, wordsOf, writePlace } from "./words.ts";

/** Words of one opening: commitment 48, proof 48. */
const OPENING_WORDS = 3;
/** Most slots of a batch in blobs. */
const MAX_PLACE = 0xffff;

/** A blob batch whose vaults can be proven. */
export interface OpenableBatch extends BlobBatch {
  /** The hashes of its blobs, in order. */
  readonly versionedHashes: readonly Hash[];
  /** Indexes of the assets that L1 has left out. */
  readonly leftOut?: readonly number[];
}

/** The proof of a vault in blobs: its siblings are the words of docs/protocol.md 6. */
export type OpenedVault = VaultProof;

/**
 * The proof of a vault in a blob batch (docs/protocol.md 6). It is not verified.
 *
 * @example
 * const openings = elementPlaces(batch, slot).map((place) => open(place));
 * const proof = openedProof(batch, vault, openings);
 *
 * @param openings - of the places that {@link elementPlaces} names, in order
 * @throws MintmarkError `validation_failed` when the manifest leaves the vault's asset out
 */
export function openedProof(
  batch: OpenableBatch,
  vault: VaultContent,
  openings: readonly Pick<Opening, "commitment" | "proof">[],
): VaultProof {
  const assetPath = manifestPath(batch.assets, vault, batch.leftOut);
  const words = openings.flatMap(({ commitment, proof }) => {
    return unpackHashes(packed([POINT_BYTES], commitment, proof));
  });
  const [, first] = elementPlaces(batch, unpackBatchVaultId(vault.vaultId).slot);
  const continuation: Hash[] = first === undefined ? [] : [wordOf(first)];
  const siblings = [
    manifestHash(batch.assets),
    ...batch.versionedHashes,
    ...words,
    ...continuation,
  ];
  return { vault, vaultCount: batch.vaultCount, siblings, assetPath };
}

/**
 * The batch root that a proof of openings leads to, and whether they open the vault's elements.
 * Both as on L1, which takes about 0.1 s for each element here.
 *
 * @throws MintmarkError `validation_failed` when the words are not those of openings
 */
export function openedRoot({ vault, vaultCount, siblings, assetPath }: VaultProof): {
  readonly root: Hash;
  /** The vault's elements, which the proof opens. */
  readonly elements: readonly Hex[];
  readonly opens: () => boolean;
} {
  const { mode, slot } = unpackBatchVaultId(vault.vaultId);
  const { head, rest } = wordsOf({
    assetIndex: assetPath.index,
    owner: hexToBytes(vault.owner, 20),
    amount: vault.amount,
    mintingBlob: hexToBytes(vault.mintingBlob),
  });
  const more = rest.length / CONTINUATION_BYTES;
  const count = 1 + more;
  const blobs = siblings.length - 1 - count * OPENING_WORDS - (more > 0 ? 1 : 0);
  if (mode !== "zk-rollup" || blobs < 1) {
    throw invalid("the words are not those that open a vault's elements");
  }
  const [manifest, ...hashes] = siblings.slice(0, 1 + blobs) as [Hash, ...Hash[]];
  const root = batchRoot(
    "blobs",
    manifestRootOf(vault, assetPath),
    blobContent(vaultCount, manifest, hashes),
  );
  requireInteger("slot", slot, 0, vaultCount - 1);
  const first = more === 0 ? 0 : Number(siblings.at(-1));
  if (more > 0) {
    requireInteger("place of a continuation", first, vaultCount, MAX_PLACE);
    writePlace(head, 0, first);
  }
  const elements = [bytesToHex(head)];
  for (let i = 0; i < more; i++) elements.push(bytesToHex(elementOf(rest, i)));
  const points = packHashes(siblings.slice(1 + blobs, 1 + blobs + count * OPENING_WORDS));
  const opensAt = (i: number) => {
    const place = i === 0 ? slot : first + i - 1;
    const at = 2 * i * POINT_BYTES;
    const hash = hashes[Math.floor(place / BLOB_ELEMENTS)];
    const opening = {
      index: place % BLOB_ELEMENTS,
      element: elements[i] as Hex,
      commitment: bytesToHex(points.subarray(at, at + POINT_BYTES)),
      proof: bytesToHex(points.subarray(at + POINT_BYTES, at + 2 * POINT_BYTES)),
    };
    return hash !== undefined && verifyOpening(hash, opening);
  };
  return { root, elements, opens: () => Array.from({ length: count }, (_, i) => i).every(opensAt) };
}
