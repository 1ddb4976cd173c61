import type { BatchKind, Hex } from "../model.ts";
import type { AssetId } from "../ports.ts";
import {
  batchDataOf,
  batchLeaves,
  readBatchData,
  type VaultEntry,
  wordBatch,
} from "../protocol/batch-data.ts";
import { BatchTree } from "../protocol/batch-tree.ts";
import * as blobs from "../protocol/blob-batch.ts";
import { stateLeaf } from "../protocol/commitment.ts";
import { bytesToHex, hexToBytes, keccak256 } from "../protocol/hex.ts";
import { kindOf, manifestRoot, batchRoot as rootOf } from "../protocol/manifest.ts";
import {
  encodeTransferData,
  type TransferGroup,
  transferLeaves,
} from "../protocol/transfer-data.ts";
import { versionedHash } from "../protocol/versioned-hash.ts";
import type { EntryOf } from "../store/entries.ts";
import type { BatchRecord } from "../store/records.ts";
import type { StoredVault } from "../store/vault-columns.ts";
import { NO_ASSET, type ReferenceTenants } from "./reference-tenants.ts";

/** The commitment to a blob. */
export type CommitToBlob = (blob: Uint8Array) => Promise<Hex>;
/** Stored data of a foreign batch that our encoder would not reproduce. */
export type Given = NonNullable<EntryOf<"historyAdopted">["batches"][number]["given"]>;
type Batch = Pick<BatchRecord, "mode" | "batchNumber" | "inBlobs">;

/** A batch's data, and what follows from it. */
export interface DerivedData {
  readonly data: Uint8Array;
  readonly pageRoots: Uint8Array;
  /** The leaf in the state tree. */
  readonly leaf: Uint8Array;
  readonly facts: Pick<BatchRecord, "assets" | "content" | "batchRoot" | "dataHash">;
}

/** Derives a batch of mints; null for a void slot. */
export async function deriveBatch(
  { mode, batchNumber, inBlobs }: Batch,
  vaults: readonly (StoredVault | null)[],
  tenants: ReferenceTenants,
  commit: CommitToBlob,
): Promise<DerivedData> {
  const slots = vaults.map((vault): VaultEntry | null => {
    if (vault === null) return null;
    const { chainId, assetType } = tenants.asset(vault.assetIndex) ?? NO_ASSET;
    const { owner, amount, mintingBlob } = vault;
    return { chainId, owner, assetType, amount, mintingBlob };
  });
  if (inBlobs) return withBlobs(batchNumber, blobs.encodeBlobBatch(slots), commit);
  const batch = wordBatch(slots);
  const leaves = batchLeaves(batch, mode, batchNumber);
  return withTree(batchNumber, kindOf(mode), leaves, batchDataOf(batch), batch.assets);
}

export async function deriveGiven(
  { mode, batchNumber, inBlobs }: Batch,
  { data: hex, assets }: Given,
  commit: CommitToBlob,
): Promise<DerivedData> {
  const data = hexToBytes(hex);
  if (inBlobs) return withBlobs(batchNumber, blobs.readBlobBatchData(data), commit);
  const leaves = batchLeaves(readBatchData(data), mode, batchNumber);
  return withTree(batchNumber, kindOf(mode), leaves, data, assets);
}

export function deriveTransfers(
  batchNumber: number,
  groups: readonly TransferGroup[],
): DerivedData {
  const leaves = transferLeaves(groups, batchNumber);
  return withTree(batchNumber, "transfers", leaves, encodeTransferData(groups), []);
}

function withTree(
  batchNumber: number,
  kind: BatchKind,
  leaves: Uint8Array,
  data: Uint8Array,
  assets: readonly AssetId[],
): DerivedData {
  const tree = new BatchTree(leaves);
  const [content, dataHash] = [bytesToHex(tree.root), bytesToHex(keccak256(data))];
  const batchRoot = rootOf(kind, manifestRoot(assets), content);
  const leaf = hexToBytes(stateLeaf({ batchNumber, vaultCount: tree.count, dataHash, batchRoot }));
  return {
    data,
    pageRoots: tree.pageRoots(),
    leaf,
    facts: { assets, content, batchRoot, dataHash },
  };
}

async function withBlobs(
  batchNumber: number,
  batch: blobs.BlobBatch,
  commit: CommitToBlob,
): Promise<DerivedData> {
  const { vaultCount, assets } = batch;
  const commitments: Hex[] = [];
  for (const blob of blobs.blobsIn(batch)) commitments.push(await commit(blob));
  const content = blobs.blobContent(
    vaultCount,
    blobs.manifestHash(assets),
    commitments.map(versionedHash),
  );
  const roots = { batchRoot: rootOf("blobs", manifestRoot(assets), content), dataHash: content };
  const leaf = hexToBytes(stateLeaf({ batchNumber, vaultCount, ...roots }));
  const pageRoots = Buffer.concat(commitments.map((commitment) => hexToBytes(commitment)));
  return {
    data: blobs.blobBatchData(batch),
    pageRoots,
    leaf,
    facts: { assets, content, ...roots },
  };
}
