import { BatchTree } from "../protocol/batch-tree.ts";
import { keccak256 } from "../protocol/hash.ts";
import { bytesToHex } from "../protocol/hex.ts";
import { transferBatchRoot } from "../protocol/transfer.ts";
import { encodeTransferData, type TransferGroup, transferLeaves } from "../protocol/transfer-data.ts";
import { encodeBatchTokens } from "../store/batch-tokens.ts";
import type { VaultColumns } from "../store/vault-columns.ts";
import { itemsOf } from "./batch-items.ts";
import type { AssetAt, DerivedBatch } from "./derive-batch.ts";

/** Records of a batch of transfers. Its leaves bind what was signed; L1 decides what the vaults hold. No new tokens. */
export function deriveTransfers(
  batchNumber: number,
  groups: readonly TransferGroup[],
  vaults: VaultColumns,
  assetAt: AssetAt,
): DerivedBatch {
  const data = encodeTransferData(groups);
  const tree = new BatchTree(transferLeaves(groups, batchNumber));
  const content = bytesToHex(tree.root);
  const none = new Uint32Array(0);
  return {
    data,
    pageRoots: tree.pageRoots(),
    tokens: encodeBatchTokens({ hashes: none, slots: none }),
    items: itemsOf({ mode: "zk-rollup", batchNumber }, vaults, assetAt, burntMask(vaults)),
    assets: [],
    content,
    batchRoot: transferBatchRoot(content),
    dataHash: bytesToHex(keccak256(data)),
  };
}

/** 1 for each slot that a redemption has burnt: it holds no units. */
function burntMask({ count, amountHigh, amountLow }: VaultColumns): Uint8Array {
  const mask = new Uint8Array(count);
  for (let slot = 0; slot < count; slot++) mask[slot] = amountHigh[slot] === 0 && amountLow[slot] === 0 ? 1 : 0;
  return mask;
}
