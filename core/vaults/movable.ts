import { MintmarkError } from "../errors.ts";
import type { Ledger } from "../ledger/ledger.ts";
import type { VaultId } from "../model.ts";
import { packVaultId, type VaultPlace } from "../protocol/vault.ts";
import { requireNotVoid } from "../sealing/void-runs.ts";
import type { ActivityRecord } from "../store/records.ts";
import type { StoredVault } from "../store/vault-columns.ts";

/**
 * Throws while something else takes the vault: a withdrawal, a transfer or a fill.
 * docs/guides/trade.md has the table of what excludes what. An open order takes nothing, so it is
 * not asked for here.
 */
export function requireFree(
  ledger: Ledger,
  vaultId: VaultId,
  { pending, spentBy }: ActivityRecord,
): void {
  if (pending.length > 0) throw new MintmarkError("withdrawal_pending");
  if (spentBy !== null) throw new MintmarkError("vault_spent");
  if (ledger.trades.latest.has(vaultId)) throw new MintmarkError("fill_pending");
}

/**
 * Throws unless the vault can change hands now, whole or in part. Otherwise its owner can only
 * withdraw it.
 */
export function requireMovable(
  ledger: Ledger,
  place: VaultPlace,
  vault: StoredVault,
  activity: ActivityRecord,
): void {
  const { transferable, chainId } = ledger.tenants.assetAt(vault.assetIndex);
  const batch = ledger.batches.records[place.mode].latest.get(place.batchNumber);
  requireNotVoid(ledger.batches.voids, place, "latest");
  if (transferable !== true || chainId !== ledger.services.settlement.chainId)
    throw new MintmarkError("asset_not_transferable");
  requireFree(ledger, packVaultId(place), activity);
  if (batch?.status !== "finalized") throw new MintmarkError("proof_not_ready", NOT_FINAL);
  if (vault.amount - activity.withdrawn <= 0n)
    throw new MintmarkError("insufficient_balance", "Nothing is left in this vault.");
}

const NOT_FINAL = "The vault's batch is not final on L1 yet. Repeat the request afterwards.";
