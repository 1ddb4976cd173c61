import type { BatchKind, Hash, Hex, MintingBlobScheme, Standard } from "../model.ts";
import type { AssetId } from "../ports.ts";
import { batchDataOf, batchLeaves, readBatchData } from "../protocol/batch-data.ts";
import { BatchTree } from "../protocol/batch-tree.ts";
import {
  blobBatchData,
  blobBatchOf,
  blobsIn,
  isBlobBatchData,
  readBlobBatchData,
} from "../protocol/blob-batch.ts";
import { bytesToHex, hexToBytes, keccak256 } from "../protocol/hex.ts";
import type { Kzg } from "../protocol/kzg/kzg-thread.ts";
import { batchRoot, kindOf, manifestRoot } from "../protocol/manifest.ts";
import {
  encodeTransferData,
  type TransferGroup,
  transferLeaves,
} from "../protocol/transfer-data.ts";
import type { BatchPlace } from "../protocol/vault.ts";
import { leavesOfWords } from "../protocol/words.ts";
import type { VoidRun } from "../store/records.ts";
import { encodeBatchTokens } from "../store/token-index.ts";
import type { VaultColumns } from "../store/vault-columns.ts";
import { type BatchItems, itemsOf } from "./batch-items.ts";
import { contentIn } from "./contents.ts";
import { columnWords } from "./seal-columns.ts";
import { voidMask, zeroRuns } from "./void-runs.ts";

export interface BatchToDerive extends BatchPlace {
  readonly inBlobs?: boolean; // Default false
}

/** Void slots of a batch. Those of left-out assets keep their vaults in the data. */
export type DerivedVoid = VoidRun & { readonly leftOut?: boolean };

/** The records of a sealed batch that any thread derives from its vaults. */
export interface DerivedRecords {
  readonly data: Uint8Array;
  readonly tokens: Uint8Array; // Encoded by encodeBatchTokens
  readonly items: BatchItems;
  readonly assets: readonly AssetId[]; // The batch's manifest
}

/** The records of a batch, and the roots and hashes that L1 gets. */
export interface CompleteRecords extends DerivedRecords {
  /** {@link BatchTree.pageRoots}; for blobs, their concatenated commitments. */
  readonly pageRoots: Uint8Array;
  /** Root of the vault tree, or the content of a batch in blobs. */
  readonly content: Hash;
  readonly batchRoot: Hash;
  readonly dataHash: Hash;
}

export interface DerivedAsset extends AssetId {
  readonly standard: Standard;
  readonly mintingBlobScheme: MintingBlobScheme;
}

export type AssetAt = (assetIndex: number) => DerivedAsset;

/** A batch in blobs has no commitments yet, so only its records are derived. */
export type DerivingResult<B extends BatchToDerive = BatchToDerive> =
  | CompleteRecords
  | ("inBlobs" extends keyof B ? DerivedRecords : never);

/**
 * Encodes a batch, hashes its tree and lists its tokens, without void slots. Pure, so it runs on
 * any thread.
 */
export function deriveBatch<B extends BatchToDerive>(
  { mode, batchNumber, inBlobs = false }: B,
  vaults: VaultColumns,
  assetAt: AssetAt,
  voids: readonly DerivedVoid[] = [],
): DerivingResult<B> {
  const held = voidMask(voids, vaults.count);
  const tokens = encodeBatchTokens(tokensOf(vaults, assetAt, held));
  const items = itemsOf({ mode, batchNumber }, vaults, assetAt, held);
  const batch = columnWords(vaults, assetAt, voidMask(zeroRuns(voids), vaults.count));
  const data = inBlobs ? blobBatchData(blobBatchOf(batch)) : batchDataOf(batch);
  const records = { data, tokens, items, assets: batch.assets };
  const derived = inBlobs
    ? records
    : withTree(kindOf(mode), leavesOfWords(batch.words, { mode, batchNumber }), records);
  return derived as DerivingResult<B>;
}

/** The data and the manifest of a batch that another operator made, as L1 has them. */
export interface GivenData {
  readonly data: Uint8Array;
  readonly assets: readonly AssetId[];
}

/**
 * {@link deriveBatch} for a batch whose leaves are those of given data, whatever its vaults here
 * say.
 */
export function deriveGiven(
  { mode, batchNumber }: BatchToDerive,
  { data, assets }: GivenData,
  vaults: VaultColumns,
  assetAt: AssetAt,
  voids: readonly DerivedVoid[],
): DerivingResult {
  const held = voidMask(voids, vaults.count);
  const tokens = encodeBatchTokens(tokensOf(vaults, assetAt, held));
  const records = {
    data,
    tokens,
    items: itemsOf({ mode, batchNumber }, vaults, assetAt, held),
    assets,
  };
  if (isBlobBatchData(data)) return records;
  return withTree(kindOf(mode), batchLeaves(readBatchData(data), mode, batchNumber), records);
}

function withTree(kind: BatchKind, leaves: Uint8Array, records: DerivedRecords): CompleteRecords {
  const tree = new BatchTree(leaves);
  const content = bytesToHex(tree.root);
  return {
    ...records,
    pageRoots: tree.pageRoots(),
    content,
    batchRoot: batchRoot(kind, manifestRoot(records.assets), content),
    dataHash: bytesToHex(keccak256(records.data)),
  };
}

/** Completes a batch in blobs: commits to them, about 50 ms each. */
export async function withContent(
  derived: DerivedRecords,
  kzg: Pick<Kzg, "commitment">,
): Promise<CompleteRecords> {
  const blobs = blobsIn(readBlobBatchData(derived.data));
  return withCommitments(derived, await Promise.all(blobs.map((blob) => kzg.commitment(blob))));
}

/** Completes a batch in blobs whose commitments are known. Does not compare them with the blobs. */
export function withCommitments(
  derived: DerivedRecords,
  commitments: readonly Hex[],
): CompleteRecords {
  const content = contentIn(derived.data, commitments);
  const roots = {
    content,
    batchRoot: batchRoot("blobs", manifestRoot(derived.assets), content),
    dataHash: content,
  };
  return {
    ...derived,
    ...roots,
    pageRoots: Buffer.concat(commitments.map((commitment) => hexToBytes(commitment))),
  };
}

/** The ERC-721 tokens of a batch in slot order, without void slots. */
function tokensOf(
  { count, assetIndex, tokenHash }: VaultColumns,
  assetAt: AssetAt,
  voids: Uint8Array | null,
) {
  const hashes = new Uint32Array(count);
  const slots = new Uint32Array(count);
  let found = 0;
  let asset = -1;
  let isUnique = false;
  for (let slot = 0; slot < count; slot++) {
    if (assetIndex[slot] !== asset) {
      asset = assetIndex[slot]!;
      isUnique = assetAt(asset).standard === "erc721";
    }
    if (!isUnique || voids?.[slot] === 1) continue;
    hashes[found] = tokenHash[slot]!;
    slots[found++] = slot;
  }
  return { hashes: hashes.subarray(0, found), slots: slots.subarray(0, found) };
}

/**
 * Records of a batch of transfers. Its leaves bind what was signed; L1 decides what the vaults
 * hold. No new tokens.
 */
export function deriveTransfers(
  batchNumber: number,
  groups: readonly TransferGroup[],
  vaults: VaultColumns,
  assetAt: AssetAt,
): CompleteRecords {
  const none = new Uint32Array(0);
  return withTree("transfers", transferLeaves(groups, batchNumber), {
    data: encodeTransferData(groups),
    tokens: encodeBatchTokens({ hashes: none, slots: none }),
    items: itemsOf({ mode: "zk-rollup", batchNumber }, vaults, assetAt, burntMask(vaults)),
    assets: [],
  });
}

/** 1 for each slot that a redemption has burnt: it holds no units. */
function burntMask({ count, amountHigh, amountLow }: VaultColumns): Uint8Array {
  const mask = new Uint8Array(count);
  for (let slot = 0; slot < count; slot++)
    mask[slot] = amountHigh[slot] === 0 && amountLow[slot] === 0 ? 1 : 0;
  return mask;
}
