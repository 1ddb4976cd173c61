import { MintmarkError } from "../errors.ts";
import type { Cursors } from "../ledger/cursor.ts";
import type { Ledger } from "../ledger/ledger.ts";
import type { PageOptions } from "../ledger/list.ts";
import type { Page, Uuid, Vault, VaultId } from "../model.ts";
import type { PlacedMint } from "../store/mint-entry.ts";
import { findPage } from "./transaction-page.ts";
import type { Found } from "./transaction-scan.ts";
import { matchesAsset } from "./transactions.ts";
import { batchAt, lostAt, placeOf, readVault, readVaults, vaultViews } from "./vaults.ts";

/** One of an application's vaults. Throws `vault_not_found`, for another application's too. */
export async function findVault(ledger: Ledger, applicationId: Uuid, vaultId: VaultId): Promise<Vault> {
  const { applicationIndex } = ledger.application(applicationId);
  const place = placeOf(vaultId);
  batchAt(ledger, place);
  const vault = await readVault(ledger, place);
  if (vault.applicationIndex !== applicationIndex) throw new MintmarkError("vault_not_found");
  const [view] = await vaultViews(ledger, applicationIndex, [{ place, vault }]);
  if (view === undefined) throw new MintmarkError("vault_not_found");
  return view;
}

/** A page of an application's vaults, in the order of the mints that made them. */
export async function listVaults(
  ledger: Ledger,
  cursors: Cursors,
  applicationId: Uuid,
  filter: VaultFilter,
): Promise<Page<Vault>> {
  const { applicationIndex } = ledger.application(applicationId);
  const { found, rest } = await findPage(ledger, cursors, applicationId, filter, {
    list: "vaults",
    type: "mint",
    order: "asc",
    wanted: (one) => vaultMadeBy(ledger, one) !== null && matchesAsset(ledger, one, filter.assetId),
  });
  const places = found.flatMap((one) => vaultMadeBy(ledger, one) ?? []);
  return { data: await vaultViews(ledger, applicationIndex, await readVaults(ledger, places)), ...rest };
}

/** The vault that a mint made; null when it was added to one, when L1's history lacks it, and for withdrawals. */
function vaultMadeBy(ledger: Ledger, { source }: Found): PlacedMint | null {
  if (source.type !== "mint" || source.mint.amountBefore !== 0n) return null;
  return lostAt(ledger, source.mint, source.journalSequence) === null ? source.mint : null;
}

export interface VaultFilter extends PageOptions {
  readonly userId?: Uuid | undefined;
  readonly assetId?: Uuid | undefined;
}
