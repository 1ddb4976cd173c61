import type { StoredVault } from "../columns/vault-columns.ts";
import { MintmarkError } from "../errors.ts";
import { keccak256 } from "../keccak/index.ts";
import type { Mode } from "../model.ts";
import type { VaultContent } from "../ports.ts";
import { encodeBatchData } from "../protocol/batch-encoder.ts";
import { BatchTree } from "../protocol/batch-tree.ts";
import { stateLeaf } from "../protocol/commitment.ts";
import { bytesToHex, hexToBytes } from "../protocol/hex.ts";
import { packVaultId, vaultLeaves } from "../protocol/vault.ts";
import type { AssetRecord, BatchRecord } from "../store/records.ts";
import { SAVED } from "./derive-batch.ts";
import { SLOTS_OF_ONE_VOID, slotCountOf } from "./void-runs.ts";
/** What a slot's leaf commits to. */
export function contentOf(
  place: { readonly mode: Mode; readonly batchNumber: number; readonly slot: number },
  vault: StoredVault,
  asset: Pick<AssetRecord, "chainId" | "assetType">,
): VaultContent {
  return {
    vaultId: packVaultId(place),
    chainId: asset.chainId,
    owner: vault.owner,
    assetType: asset.assetType,
    amount: vault.amount,
    blob: vault.blob,
  };
}

/** A batch's vaults as the tree and the encoded data see them. */
export function contentsOf(
  mode: Mode,
  batchNumber: number,
  vaults: readonly StoredVault[],
  assetAt: (assetIndex: number) => Pick<AssetRecord, "chainId" | "assetType">,
  firstSlot = 0,
): VaultContent[] {
  return vaults.map((vault, i) =>
    contentOf({ mode, batchNumber, slot: firstSlot + i }, vault, assetAt(vault.assetIndex)),
  );
}

/** Encoded data, tree and hashes of a closed batch of this mode; null for a void slot. */
export function sealContents(mode: Mode, contents: readonly (VaultContent | null)[]) {
  const alone = contents.length === 1 && contents[0] === null;
  const slots = alone ? Array<null>(SLOTS_OF_ONE_VOID).fill(null) : contents;
  const data = encodeBatchData(slots, SAVED[mode]);
  const tree = new BatchTree(vaultLeaves(slots));
  return { data, tree, batchRoot: bytesToHex(tree.root), dataHash: bytesToHex(keccak256(data)) };
}

/** The leaf of a sealed batch in its mode's state tree. */
export function stateLeafOf(
  batch: Pick<BatchRecord, "batchNumber" | "vaultCount" | "dataHash" | "batchRoot">,
): Uint8Array {
  const { batchNumber, dataHash, batchRoot } = batch;
  if (dataHash === null || batchRoot === null) throw new MintmarkError("store_corrupt", "A sealed batch has no root.");
  return hexToBytes(stateLeaf({ batchNumber, vaultCount: slotCountOf(batch), dataHash, batchRoot }));
}
