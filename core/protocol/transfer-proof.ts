import type { Address, VaultId } from "../model.ts";
import type { ProvenHop, ProvenVault } from "../ports.ts";
import { holds, requireInteger } from "./bounds.ts";
import { bytesToHex, foldPath, hexToBytes, packHashes } from "./hex.ts";
import { treeHeight } from "./merkle.ts";
import {
  MAX_TRANSFER_HOPS,
  TransferPart,
  transferAuth,
  transferBatchRoot,
  transferItem,
  transferLeaf,
  transferList,
} from "./transfer.ts";
import { MAX_TRANSFER_SLOTS, type TransferGroup, type TransferOutput } from "./transfer-data.ts";
import { unpackVaultId } from "./vault.ts";

/** A vault's way from its mint: what {@link tipIdOf} and {@link tipOwnerOf} read of it. */
type Chain = Pick<ProvenVault, "vault" | "hops">;

/**
 * A record of a transfer batch with its proof: the hop from the vault that it spends to one that it
 * makes.
 */
export function hopOf(
  groups: readonly TransferGroup[],
  { outId, part, group, transfer: { amount, to } }: TransferOutput,
  place: Pick<ProvenHop, "header" | "siblings">,
): ProvenHop {
  const { transfers, deadline, signature } = groups[group]!;
  return {
    outId,
    part,
    amount,
    to,
    deadline,
    list: bytesToHex(transferList(transfers)),
    signature,
    ...place,
  };
}

/**
 * Whether the batch of a hop's header holds its record at its slot, and the record spends that
 * vault. Says nothing of the signature: `transferFault` judges the record. False for a malformed
 * hop.
 *
 * @example
 * verifyHop(vault.vaultId, hop); // true
 */
export function verifyHop(inId: VaultId, hop: ProvenHop): boolean {
  return holds(() => {
    const { outId, part, amount, to, deadline, list, signature, header, siblings } = hop;
    const { batchRoot, vaultCount } = header;
    const { mode, slot } = unpackVaultId(outId);
    requireInteger("vaultCount", vaultCount, 1, MAX_TRANSFER_SLOTS);
    requireInteger("slot", slot, 0, vaultCount - 1);
    requireInteger(
      "number of siblings",
      siblings.length,
      treeHeight(vaultCount),
      treeHeight(vaultCount),
    );
    const auth = transferAuth(deadline, hexToBytes(list), hexToBytes(signature));
    const leaf = transferLeaf(outId, part, transferItem({ vaultId: inId, amount, to }), auth);
    const content = bytesToHex(foldPath(leaf, slot, packHashes(siblings)));
    return mode === "zk-rollup" && transferBatchRoot(content) === batchRoot.toLowerCase();
  });
}

/**
 * Whether committed records lead from the minted vault to the tip, and the refutation is a record
 * of the tip.
 */
export function verifyHops({
  vault,
  hops = [],
  refutation,
}: Chain & Pick<ProvenVault, "refutation">): boolean {
  if (hops.length > MAX_TRANSFER_HOPS) return false;
  let inId = vault.vaultId;
  for (const hop of hops) {
    if (!verifyHop(inId, hop)) return false;
    inId = hop.outId;
  }
  return refutation === undefined || verifyHop(inId, refutation);
}

/** Whether the vault has transfers, or a record to refute. */
export function isTransferred({
  hops = [],
  refutation,
}: Pick<ProvenVault, "hops" | "refutation">): boolean {
  return hops.length > 0 || refutation !== undefined;
}

/**
 * Shares of a transaction's room that a withdrawal takes: the records of a transferred vault need
 * as much as the withdrawal itself.
 */
export function sharesOf(proven: Pick<ProvenVault, "hops" | "refutation">): number {
  return isTransferred(proven) ? 2 : 1;
}

/**
 * The vault that is paid: the last one of a chain of transfers, or the minted one.
 *
 * @example
 * const isShown = tipIdOf(proof) === vaultId;
 */
export function tipIdOf({ vault, hops = [] }: Chain): VaultId {
  return hops.at(-1)?.outId ?? vault.vaultId;
}

/**
 * The tip's owner, if each record is valid; the zero address when it is redeemed.
 *
 * @example
 * const isMine = tipOwnerOf(proof) === owner;
 */
export function tipOwnerOf({ vault, hops = [] }: Chain): Address {
  const paid = hops.findLast(({ part }) => part === TransferPart.receiver);
  return (paid?.to ?? vault.owner).toLowerCase() as Address;
}
