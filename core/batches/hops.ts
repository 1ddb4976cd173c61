import type { Ledger } from "../ledger/ledger.ts";
import type { Hash, VaultId } from "../model.ts";
import type { ProvenHop } from "../ports.ts";
import { PagedBatchTree, pageOf } from "../protocol/batch-tree.ts";
import { invariant } from "../protocol/bounds.ts";
import { bytesToHex, unpackHashes } from "../protocol/hex.ts";
import { decodeTransferData, leavesOf, type TransferOutput, transferOutputs } from "../protocol/transfer-data.ts";
import { hopOf, verifyHop } from "../protocol/transfer-proof.ts";
import { packVaultId, type VaultPlace } from "../protocol/vault.ts";
import { slotCountOf } from "../sealing/void-runs.ts";
import { batchDataKey, pageRootsKey } from "../store/store-keys.ts";
import { makerOf, sourceOf, spenderOf } from "../vaults/transfer-lists.ts";
import { placeOf } from "../vaults/vaults.ts";
import { corruptBatch, findBatch, headerOf } from "./batches.ts";

/** Proves each transfer from the mint to a vault of a sealed transfer batch. Throws `store_corrupt`. */
export async function provenHops(ledger: Ledger, place: VaultPlace) {
  const hops: ProvenHop[] = [];
  for (let { mode, batchNumber, slot } = place; ; ) {
    if (!findBatch(ledger, mode, batchNumber).transfers)
      return { originId: packVaultId({ mode, batchNumber, slot }), hops };
    const { hop, spent } = await provenHop(ledger, batchNumber, slot);
    hops.unshift(hop);
    ({ mode, batchNumber, slot } = placeOf(spent));
  }
}

/** The place of the minted vault that a vault comes from by transfers. */
export async function originOf(ledger: Ledger, place: VaultPlace): Promise<VaultPlace> {
  for (let at = place; ; ) {
    const maker = await makerOf(ledger, at);
    const source = maker === null ? null : sourceOf(maker);
    if (source === null) return at;
    at = source;
  }
}

/** The committed record that spends a vault but does not count; null when there is none. */
export async function provenRefutation(ledger: Ledger, vaultId: VaultId): Promise<ProvenHop | null> {
  const spender = await spenderOf(ledger, vaultId);
  if (spender === null || spender.output.transfer.fault === null) return null;
  return (await provenHop(ledger, spender.place.batchNumber, spender.place.slot)).hop;
}

/** The record of a slot with its proof, and the vault that it spends. */
async function provenHop(ledger: Ledger, batchNumber: number, slot: number) {
  const record = findBatch(ledger, "zk-rollup", batchNumber);
  const keys = [batchDataKey("zk-rollup", batchNumber), pageRootsKey("zk-rollup", batchNumber)];
  const [data, pageRoots] = await ledger.store.getMany(keys);
  if (data === undefined || pageRoots === undefined) throw corruptBatch("zk-rollup", batchNumber, "transfers");
  const groups = decodeTransferData(data);
  const outputs = transferOutputs(groups, batchNumber);
  const tree = new PagedBatchTree(outputs.length, pageRoots);
  if (bytesToHex(tree.root) !== record.content) throw corruptBatch("zk-rollup", batchNumber, "page roots");
  const { firstSlot, leafCount } = pageOf(tree.count, slot);
  const leaves = leavesOf(groups, outputs.slice(firstSlot, firstSlot + leafCount));
  const output = outputs[slot] as TransferOutput;
  const siblings = unpackHashes(tree.siblings(slot, leaves));
  const root = { batchRoot: record.batchRoot as Hash, vaultCount: slotCountOf(record) };
  const header = headerOf(record) ?? { ...root, committedAt: 0n, sequence: 0n };
  const hop = hopOf(groups, output, { header, siblings });
  const spent = output.transfer.vaultId;
  invariant(verifyHop(spent, hop), `a wrong proof of the transfer to vault ${output.outId}`);
  return { hop, spent };
}
