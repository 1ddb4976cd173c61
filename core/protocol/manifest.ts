import { invalid } from "../errors.ts";
import { BATCH_KINDS, type BatchKind, type Hash, type Series } from "../model.ts";
import type { AssetId, AssetPath } from "../ports.ts";
import { MAX_UINT64, requireBigint, requireInteger } from "./bounds.ts";
import {
  bytesToHex,
  foldPath,
  HASH_BYTES,
  hashAt,
  hashOf,
  hexToBytes,
  packHashes,
  unpackHashes,
} from "./hex.ts";
import { buildLevels, nodeIn, siblingsIn, treeHeight } from "./merkle.ts";

/** Most assets of one batch: an index fits one byte, and a path has at most eight siblings. */
export const MAX_BATCH_ASSETS = 255;
const MAX_MANIFEST_HEIGHT = 8;

const BATCH_ROOT_PREFIX = 0x06;
const MANIFEST_LEAF_PREFIX = 0x07;

/**
 * The kind of a batch. A making has that of a validium batch.
 *
 * @example
 * kindOf("zk-rollup"); // "calldata"
 * kindOf("zk-rollup", true); // "blobs"
 */
export function kindOf(mode: Series, inBlobs = false, transfers = false): BatchKind {
  if (transfers) return "transfers";
  if (inBlobs) return "blobs";
  return mode === "zk-rollup" ? "calldata" : "validium";
}

/**
 * `keccak256(0x06 ‖ kind(1) ‖ manifestRoot(32) ‖ content(32))`. Throws `validation_failed` for a
 * malformed hash.
 *
 * @example
 * const root = batchRoot(kindOf("validium"), manifestRoot(assets), bytesToHex(tree.root));
 */
export function batchRoot(kind: BatchKind, manifestRoot: Hash, content: Hash): Hash {
  return hashOf(
    [1, 1, HASH_BYTES, HASH_BYTES],
    BATCH_ROOT_PREFIX,
    BATCH_KINDS.indexOf(kind),
    manifestRoot,
    content,
  );
}

/**
 * `keccak256(0x07 ‖ chainId(8) ‖ assetType(32))`. Throws `validation_failed` for a value out of
 * bounds.
 */
export function manifestLeaf({ chainId, assetType }: AssetId): Hash {
  requireBigint("chainId", chainId, 0n, MAX_UINT64);
  return hashOf([1, 8, HASH_BYTES], MANIFEST_LEAF_PREFIX, chainId, assetType);
}

/**
 * The root over a batch's assets; 32 zero bytes when there are none, or all are left out.
 *
 * @param assets - the assets of the batch's vaults, strictly ascending by chain and asset type, at
 *   most 255
 * @param leftOut - indexes of the assets whose leaf L1 has set to zero
 * @throws MintmarkError `validation_failed` for assets that do not ascend, too many assets, or an
 *   invalid index
 *
 * @example
 * const root = manifestRoot(assets, [2]); // L1 has left out the third asset
 */
export function manifestRoot(assets: readonly AssetId[], leftOut: readonly number[] = []): Hash {
  return topOf(levelsOver(leavesOf(assets, leftOut)));
}

/** All leaves of a manifest. Parameters and errors as for {@link manifestRoot}. */
export function manifestLeaves(
  assets: readonly AssetId[],
  leftOut: readonly number[] = [],
): Hash[] {
  return unpackHashes(leavesOf(assets, leftOut));
}

/** {@link manifestRoot} of its leaves. Throws `validation_failed` for more than 255. */
export function rootOfLeaves(leaves: readonly Hash[]): Hash {
  requireInteger("number of assets", leaves.length, 0, MAX_BATCH_ASSETS);
  return topOf(levelsOver(packHashes(leaves)));
}

/**
 * The path of an asset. Parameters and errors as for {@link manifestRoot}; also throws
 * `validation_failed` when the manifest does not name the asset, or leaves it out.
 *
 * @example
 * const path = manifestPath(assets, vault);
 */
export function manifestPath(
  assets: readonly AssetId[],
  asset: AssetId,
  leftOut: readonly number[] = [],
): AssetPath {
  const index = assets.findIndex((each) => compareAssets(each, asset) === 0);
  if (index < 0) throw invalid("The batch's manifest does not name this asset.");
  if (leftOut.includes(index)) throw invalid("The batch's manifest leaves this asset out.");
  return pathIn(manifestLeaves(assets, leftOut), index);
}

/** The path of one of a manifest's leaves. */
export function pathIn(leaves: readonly Hash[], index: number): AssetPath {
  const siblings = siblingsIn(levelsOver(packHashes(leaves)), index, 0);
  return { index, siblings: unpackHashes(siblings) };
}

/**
 * Computes the manifest's root from an asset's path. Throws `validation_failed` for a malformed
 * path.
 */
export function manifestRootOf(asset: AssetId, { index, siblings }: AssetPath): Hash {
  requireInteger("number of the asset's siblings", siblings.length, 0, MAX_MANIFEST_HEIGHT);
  requireInteger("index of the asset", index, 0, 2 ** siblings.length - 1);
  return bytesToHex(foldPath(hexToBytes(manifestLeaf(asset)), index, packHashes(siblings)));
}

/**
 * Order of a manifest: by chain, then by asset type. Negative when `a` comes first.
 *
 * @example
 * const manifest = [...assets].sort(compareAssets);
 */
export function compareAssets(a: AssetId, b: AssetId): number {
  if (a.chainId !== b.chainId) return a.chainId < b.chainId ? -1 : 1;
  const [left, right] = [a.assetType.toLowerCase(), b.assetType.toLowerCase()];
  return left === right ? 0 : left < right ? -1 : 1;
}

/** Throws `validation_failed` unless there are at most 255 assets, strictly ascending. */
export function requireManifest(assets: readonly AssetId[]): void {
  requireInteger("number of assets", assets.length, 0, MAX_BATCH_ASSETS);
  for (let i = 1; i < assets.length; i++) {
    if (compareAssets(assets[i - 1] as AssetId, assets[i] as AssetId) >= 0) {
      throw invalid(`asset ${i} of the manifest does not ascend`);
    }
  }
}

function levelsOver(leaves: Uint8Array): readonly Uint8Array[] {
  return buildLevels(leaves, 0, treeHeight(leaves.length / HASH_BYTES));
}

function topOf(levels: readonly Uint8Array[]): Hash {
  return bytesToHex(nodeIn(levels.at(-1) as Uint8Array, 0, levels.length - 1));
}

function leavesOf(assets: readonly AssetId[], leftOut: readonly number[]): Uint8Array {
  requireManifest(assets);
  const leaves = packHashes(assets.map(manifestLeaf));
  for (const index of leftOut) {
    requireInteger("index of an asset left out", index, 0, assets.length - 1);
    hashAt(leaves, index).fill(0);
  }
  return leaves;
}
