import { MintmarkError } from "../errors.ts";
import type { EngineContext } from "../ledger/context.ts";
import type { Cursors } from "../ledger/cursor.ts";
import type { Ledger } from "../ledger/ledger.ts";
import { type List, listOf, type PageOptions } from "../ledger/list.ts";
import type { Page, Uuid, Vault, VaultId } from "../model.ts";
import type { VaultContent } from "../ports.ts";
import { contentOf } from "../sealing/contents.ts";
import { requireNotVoid } from "../sealing/void-runs.ts";
import type { PlacedMint } from "../store/mint-entry.ts";
import { type Balance, listBalances } from "./balances.ts";
import { findPage } from "./transaction-page.ts";
import type { Found } from "./transaction-scan.ts";
import { matchesAsset } from "./transactions.ts";
import { batchAt, lostAt, placeOf, readVault, readVaults, vaultViews } from "./vaults.ts";

/** One of an application's vaults. Throws `vault_not_found`, for another application's too. */
async function findVault(ledger: Ledger, applicationId: Uuid, vaultId: VaultId): Promise<Vault> {
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
async function listVaults(
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

async function vaultContent(ledger: Ledger, vaultId: VaultId): Promise<VaultContent> {
  const place = placeOf(vaultId);
  const vault = await readVault(ledger, place);
  requireNotVoid(ledger.voids, place);
  return contentOf(place, vault, ledger.assetAt(vault.assetIndex));
}

export function vaultsOf(context: EngineContext): Vaults {
  return {
    get: async (applicationId, vaultId) => findVault(context.ledger, applicationId, vaultId),
    list: (applicationId, filter = {}) =>
      listOf(filter, async (at) => listVaults(context.ledger, context.cursors, applicationId, at)),
    balances: (applicationId, userId, page = {}) =>
      listOf(page, async (at) => listBalances(context.ledger, context.cursors, applicationId, userId, at)),
    content: async (vaultId) => vaultContent(context.ledger, vaultId),
  };
}

/** What owners hold: each application sees its own. */
export interface Vaults {
  get(applicationId: Uuid, vaultId: VaultId): Promise<Vault>;
  /** In the order in which they were made; shorter pages as with {@link Transactions.list}. */
  list(applicationId: Uuid, filter?: VaultFilter): List<Vault>;
  /**
   * What a user holds, by token, in the order in which each was first minted: an ERC-721 token is one vault, the others are summed over
   * vaults. The first question after opening looks at every mint of the user, later ones at what was minted since, unless a withdrawal
   * of the user's or a void vault has changed the sums. Shorter pages as with {@link Transactions.list}.
   */
  balances(applicationId: Uuid, userId: Uuid, page?: PageOptions): List<Balance>;
  /** What the vault commits to, of whichever application: public. Rejects with `vault_not_found`, `vault_void`. */
  content(vaultId: VaultId): Promise<VaultContent>;
}
