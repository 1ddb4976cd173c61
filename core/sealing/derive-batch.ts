import type { VaultColumns } from "../columns/vault-columns.ts";
import type { BlobScheme, Hash, Mode, Standard } from "../model.ts";
import type { AssetId } from "../ports.ts";
import { encodeBatchColumns, encodeBatchData } from "../protocol/batch-encoder.ts";
import { BatchTree } from "../protocol/batch-tree.ts";
import { keccak256 } from "../protocol/hash.ts";
import { bytesToHex, HASH_BYTES } from "../protocol/hex.ts";
import { batchRoot, kindOf, manifestRoot } from "../protocol/manifest.ts";
import { type BatchTokens, encodeBatchTokens } from "../store/batch-tokens.ts";
import type { VoidRun } from "../store/records.ts";
import { type BatchItems, itemsOf } from "./batch-items.ts";
import { ColumnRecords, columnLeaves, encoderColumns } from "./seal-columns.ts";
import { clearVoidLeaves, SLOTS_OF_ONE_VOID, voidMask, zeroRuns } from "./void-runs.ts";

/** The encoding's aim for a batch's data. */
const SAVED = { validium: "bytes", "zk-rollup": "gas" } as const;

/** The records of a sealed batch that follow from its vaults alone. */
export interface DerivedBatch {
  readonly data: Uint8Array;
  /** As {@link BatchTree.pageRoots}. */
  readonly pageRoots: Uint8Array;
  /** As {@link encodeBatchTokens}. */
  readonly tokens: Uint8Array;
  readonly items: BatchItems;
  /** The batch's manifest. */
  readonly assets: readonly AssetId[];
  /** Root of the vault tree. */
  readonly content: Hash;
  readonly batchRoot: Hash;
  readonly dataHash: Hash;
}

/** What the derivation needs to know of an asset. */
export interface DerivedAsset extends AssetId {
  readonly standard: Standard;
  readonly blobScheme: BlobScheme;
}

/**
 * Encodes a batch, hashes its tree and lists its tokens, straight from columns and without void slots. Pure, so it runs
 * on any thread.
 */
export function deriveBatch(
  { mode, batchNumber }: { readonly mode: Mode; readonly batchNumber: number },
  vaults: VaultColumns,
  assetAt: (assetIndex: number) => DerivedAsset,
  voids: readonly (VoidRun & { readonly leftOut?: boolean })[] = [],
): DerivedBatch {
  const zero = zeroRuns(voids);
  const mask = voidMask(zero, vaults.count);
  const alone = mask !== null && vaults.count === 1;
  const columns = encoderColumns(vaults, assetAt, mask);
  const data = alone
    ? encodeBatchData(Array<null>(SLOTS_OF_ONE_VOID).fill(null))
    : encodeBatchColumns(columns, new ColumnRecords(vaults), SAVED[mode]);
  const leaves = alone
    ? new Uint8Array(SLOTS_OF_ONE_VOID * HASH_BYTES)
    : columnLeaves(mode, batchNumber, vaults, assetAt);
  clearVoidLeaves(leaves, zero);
  const tree = new BatchTree(leaves);
  const { assets } = columns;
  const held = voidMask(voids, vaults.count);
  const content = bytesToHex(tree.root);
  return {
    data,
    pageRoots: tree.pageRoots(),
    tokens: encodeBatchTokens(tokensOf(vaults, assetAt, held)),
    items: itemsOf({ mode, batchNumber }, vaults, assetAt, held),
    assets,
    content,
    batchRoot: batchRoot(kindOf(mode), manifestRoot(assets), content),
    dataHash: bytesToHex(keccak256(data)),
  };
}

/** The ERC-721 tokens of a batch in slot order, without void slots. */
function tokensOf(
  { count, assetIndex, tokenHash }: VaultColumns,
  assetAt: (assetIndex: number) => DerivedAsset,
  voids: Uint8Array | null,
): BatchTokens {
  const hashes = new Uint32Array(count);
  const slots = new Uint32Array(count);
  let found = 0;
  let asset = -1;
  let isUnique = false;
  for (let slot = 0; slot < count; slot++) {
    if (assetIndex[slot] !== asset) {
      asset = assetIndex[slot] as number;
      isUnique = assetAt(asset).standard === "erc721";
    }
    if (!isUnique || voids?.[slot] === 1) continue;
    hashes[found] = tokenHash[slot] as number;
    slots[found++] = slot;
  }
  return { hashes: hashes.subarray(0, found), slots: slots.subarray(0, found) };
}
