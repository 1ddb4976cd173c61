import type { Ledger } from "../ledger/ledger.ts";
import { sessionCovers, TRANSFER_FAULTS, type TransferPowers } from "../protocol/transfer-rules.ts";
import { runAt } from "../sealing/void-runs.ts";
import type { ActivityRecord, TransferListRecord } from "../store/records.ts";
import type { StoredVault } from "../store/vault-columns.ts";
import { placeOf } from "../vaults/vaults.ts";

/** A vault that a transfer takes, as L1 has it now. */
export interface Spent {
  readonly vault: StoredVault;
  readonly activity: ActivityRecord;
}

/** Why L1 would not count all transfers of a list in a commit at this time, in seconds; null when it would. */
export function failureOf(
  ledger: Ledger,
  list: Pick<TransferListRecord, "transferId" | "deadline" | "transfers">,
  spent: readonly Spent[],
  powers: TransferPowers,
  commitAt: bigint,
): string | null {
  if (list.deadline < commitAt) return "The deadline came before L1 could take the transfers.";
  for (const [i, transfer] of list.transfers.entries()) {
    const { vaultId, amount } = transfer;
    const { vault, activity } = spent[i] as Spent;
    if (vault.userIndex !== transfer.userIndex || vault.assetIndex !== transfer.assetIndex)
      return `Vault ${vaultId} is another one in L1's history.`;
    if (vault.owner !== spent[0]?.vault.owner) return "The vaults of the list have several owners.";
    if (activity.spentBy !== list.transferId) return `Another transfer of vault ${vaultId} is on L1.`;
    const rest = vault.amount - activity.withdrawn;
    if (rest <= 0n || (amount !== 0n && amount >= rest)) return `Too little is left in vault ${vaultId}: ${WITHDRAWN}`;
    const { mode, batchNumber, slot } = placeOf(vaultId);
    const run = runAt(ledger.voids[mode].latest(batchNumber) ?? [], slot);
    if (run !== null) return `Vault ${vaultId} is void: ${run.failure}`;
    const { assetType } = ledger.assetAt(vault.assetIndex);
    const { signer, session, approvedAt, cancelledAt, signerCancelledAt } = powers;
    if (cancelledAt !== 0n || signerCancelledAt !== 0n) return TRANSFER_FAULTS.cancelled;
    const isCovered = session !== null && sessionCovers(session, { ...vault, assetType }, transfer, commitAt);
    if (signer !== vault.owner && approvedAt === 0n && !isCovered) return TRANSFER_FAULTS.not_authorized;
  }
  return null;
}

export const MISSING = "L1's history lacks a vault of the transfers.";
const WITHDRAWN = "its owner has withdrawn from it on L1.";
