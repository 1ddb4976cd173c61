import type { Mode, Standard } from "../model.ts";
import type { VaultContent } from "../ports.ts";
import { encodeBatchColumns, encodeBatchData } from "../protocol/batch-encoder.ts";
import { BatchTree } from "../protocol/batch-tree.ts";
import { stateLeaf } from "../protocol/commitment.ts";
import { keccak256 } from "../protocol/hash.ts";
import { bytesToHex, hexToBytes } from "../protocol/hex.ts";
import { packVaultId, vaultLeaves } from "../protocol/vault.ts";
import type { Group } from "../store/group.ts";
import type { AssetRecord, BatchRecord } from "../store/records.ts";
import { batchDataKey, batchTokensKey, pageRootsKey } from "../store/store-keys.ts";
import type { StoredVault } from "../store/vault-chunk.ts";
import { type BatchTokens, encodeBatchTokens } from "./batch-tokens.ts";
import { batchView } from "./batches.ts";
import { type Ledger, openBatchRecord } from "./ledger.ts";
import { OpenBatch } from "./open-batch.ts";
import { ColumnRecords, columnLeaves, encoderColumns, type SealedAsset } from "./seal-columns.ts";
import type { VaultColumns } from "./vault-columns.ts";

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

/** Encoded data, tree and hashes of a closed batch of this mode. */
export function sealContents(mode: Mode, contents: readonly VaultContent[]) {
  return sealed(encodeBatchData(contents, SAVED[mode]), vaultLeaves(contents));
}

/** {@link sealContents} straight from a batch's columns. */
export function sealColumns(
  { mode, batchNumber }: Pick<OpenBatch, "mode" | "batchNumber">,
  vaults: VaultColumns,
  assetAt: (assetIndex: number) => SealedAsset,
) {
  const data = encodeBatchColumns(encoderColumns(vaults, assetAt), new ColumnRecords(vaults), SAVED[mode]);
  return sealed(data, columnLeaves(mode, batchNumber, vaults, assetAt));
}

/** What the data of a batch is encoded for. */
const SAVED = { validium: "bytes", "zk-rollup": "gas" } as const;

function sealed(data: Uint8Array, leaves: Uint8Array) {
  const tree = new BatchTree(leaves);
  return { data, tree, batchRoot: bytesToHex(tree.root), dataHash: bytesToHex(keccak256(data)) };
}

/** Puts the next open batch in the place of the present one, which mints no longer reach. */
export function closeOpenBatch(ledger: Ledger, mode: Mode): OpenBatch {
  const closed = ledger.open(mode);
  const firstOrdinal = closed.firstOrdinal + closed.vaultCount;
  ledger.setOpen(new OpenBatch(mode, closed.batchNumber + 1, ledger.now(), firstOrdinal, ledger.limits));
  return closed;
}

/** Seals a batch that was closed: journals it, and writes its data, page roots and place in the state tree. */
export function sealBatch(ledger: Ledger, group: Group, closed: OpenBatch): BatchRecord {
  const { mode, batchNumber } = closed;
  const { vaultCount } = closed;
  const { data, tree, batchRoot, dataHash } = sealColumns(closed, closed.vaults, (index) => ledger.assetAt(index));
  const history = ledger.histories[mode];
  history.append(hexToBytes(stateLeaf({ batchNumber, vaultCount, dataHash, batchRoot })));
  const stateRoot = bytesToHex(history.root());
  const mintCount = closed.mintCount;
  const roots = { batchRoot, dataHash, stateRoot };
  const { time } = ledger.record(group, { kind: "batchSealed", mode, batchNumber, vaultCount, mintCount, ...roots });
  closed.flush(group);
  group.put(batchDataKey(mode, batchNumber), data);
  group.put(pageRootsKey(mode, batchNumber), tree.pageRoots());
  group.put(batchTokensKey(mode, batchNumber), encodeBatchTokens(tokensOf(closed.vaults, ledger.standards)));
  const record: BatchRecord = { ...openBatchRecord(closed), status: "sealed", ...roots, sealedAt: time };
  ledger.putBatch(group, record);
  group.onDurable(() => {
    ledger.release(closed);
    ledger.emit("batchSealed", batchView(record));
  });
  return record;
}

/** The ERC-721 tokens of a batch in slot order. */
export function tokensOf({ count, assetIndex, tokenHash }: VaultColumns, standards: readonly Standard[]): BatchTokens {
  const hashes = new Uint32Array(count);
  const slots = new Uint32Array(count);
  let found = 0;
  for (let slot = 0; slot < count; slot++) {
    if (standards[assetIndex[slot] as number] !== "erc721") continue;
    hashes[found] = tokenHash[slot] as number;
    slots[found++] = slot;
  }
  return { hashes: hashes.subarray(0, found), slots: slots.subarray(0, found) };
}
