import { MintmarkError } from "../errors.ts";
import type { Ledger } from "../ledger/ledger.ts";
import type { VaultId } from "../model.ts";
import type { ListedVault } from "../ports.ts";
import { packVaultId, type VaultPlace } from "../protocol/vault.ts";
import { requireNotLeftOut, requireNotVoid } from "../sealing/void-runs.ts";
import type { Group } from "../store/group.ts";
import type { ActivityRecord } from "../store/records.ts";
import type { StoredVault } from "../store/vault-columns.ts";
import type { VaultCaller } from "./signed-requests.ts";
import { batchAt, type LocatedVault } from "./vaults.ts";

/**
 * Throws while something else takes the vault: a withdrawal, a transfer or a fill.
 * docs/guides/trade.md has the table of what excludes what. An open order takes nothing, so it is
 * not asked for here.
 */
function requireFree(
  ledger: Ledger,
  vaultId: VaultId,
  { pending, spentBy }: ActivityRecord,
  group: Group | null,
): void {
  if (pending.length > 0) throw new MintmarkError("withdrawal_pending");
  if (spentBy !== null) throw new MintmarkError("vault_spent");
  if (ledger.trades.view(group).has(vaultId)) throw new MintmarkError("fill_pending");
}

/** A vault that its owner wants to withdraw. */
interface Withdrawable extends LocatedVault {
  /** Why it never counts again; null while it does. */
  readonly ended: MintmarkError | null;
  /** Whether the owner has cancelled on L1 what it signs of the vault. */
  readonly isCancelled: boolean;
  /** Without the withdrawals that this one replaces. */
  readonly activity: ActivityRecord;
}

/**
 * Throws unless the vault can be withdrawn as signed. Each withdrawal costs gas, so an owner takes
 * whole vaults.
 */
export function requireWithdrawable(
  ledger: Ledger,
  caller: VaultCaller,
  { vaultId, withdrawnBefore, quantity }: ListedVault,
  { place, vault, ended, isCancelled, activity }: Withdrawable,
  group: Group | null,
): void {
  if (ended) throw ended;
  if (isCancelled) throw new MintmarkError("signature_invalid", CANCELLED_VAULT);
  // The slot of a redemption holds nothing. Neither does the slot of a transfer that does not
  // count.
  if (vault.amount === 0n) throw new MintmarkError("vault_not_found");
  const batch = batchAt(ledger, place, group);
  if (batch.status === "open")
    throw new MintmarkError("proof_not_ready", "The vault's batch is not sealed yet.");
  requireNotVoid(ledger.batches.voids, place, group);
  requireNotLeftOut(batch, ledger.tenants.assetAt(vault.assetIndex));
  requireFree(ledger, vaultId, activity, group);
  // The signature covers the withdrawn total before it. If that total has changed, the signature is
  // for another message.
  if (activity.withdrawn !== withdrawnBefore) throw new MintmarkError("signature_invalid");
  const left = vault.amount - activity.withdrawn;
  if (left === 0n)
    throw new MintmarkError("insufficient_balance", "All of this vault has been withdrawn.");
  if (quantity < 1n) throw new MintmarkError("amount_out_of_range");
  if (left < quantity) throw new MintmarkError("insufficient_balance");
  if ("owner" in caller && quantity < left)
    throw new MintmarkError(
      "amount_out_of_range",
      "An owner withdraws all that is left of a vault.",
    );
}

export const CANCELLED_VAULT =
  "The owner has cancelled on L1 what it signs of this vault. Only the owner itself can withdraw it there.";

/**
 * Throws unless the vault can change hands now, whole or in part. Otherwise its owner can only
 * withdraw it.
 */
export function requireMovable(
  ledger: Ledger,
  place: VaultPlace,
  vault: StoredVault,
  activity: ActivityRecord,
  group: Group | null,
): void {
  const { transferable, chainId } = ledger.tenants.assetNow(vault.assetIndex, group);
  const batch = ledger.batches.records[place.mode].view(group).get(place.batchNumber);
  requireNotVoid(ledger.batches.voids, place, group);
  if (transferable !== true || chainId !== ledger.services.settlement.chainId)
    throw new MintmarkError("asset_not_transferable");
  requireFree(ledger, packVaultId(place), activity, group);
  if (batch?.status !== "finalized") throw new MintmarkError("proof_not_ready", NOT_FINAL);
  if (vault.amount - activity.withdrawn <= 0n)
    throw new MintmarkError("insufficient_balance", "Nothing is left in this vault.");
}

const NOT_FINAL = "The vault's batch is not final on L1 yet. Repeat the request afterwards.";
