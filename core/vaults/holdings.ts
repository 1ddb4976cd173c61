import { MintmarkError } from "../errors.ts";
import type { EngineContext } from "../ledger/context.ts";
import type { Ledger } from "../ledger/ledger.ts";
import { type List, listOf, type PageOptions } from "../ledger/list.ts";
import type { Uuid, Vault, VaultId } from "../model.ts";
import type { VaultContent } from "../ports.ts";
import { contentOf } from "../sealing/contents.ts";
import { requireNotVoid } from "../sealing/void-runs.ts";
import { type PlacedMint, vaultIdOf } from "../store/mint-entry.ts";
import { type Balance, balancesFrom } from "./balances.ts";
import { vaultsOfToken } from "./token-vaults.ts";
import { findPage } from "./transaction-page.ts";
import type { VaultFilter } from "./transaction-range.ts";
import type { Found } from "./transaction-scan.ts";
import { matches } from "./transactions.ts";
import { batchAt, lostAt, placeOf, readVault, readVaults, vaultViews } from "./vaults.ts";

/** The vault that a mint made or added to; null when L1's history lacks it, and for withdrawals. */
function vaultOf(ledger: Ledger, { source }: Found): PlacedMint | null {
  if (source.type !== "mint") return null;
  return lostAt(ledger, source.mint, source.journalSequence) === null ? source.mint : null;
}

/**
 * Which mints a list of vaults is made of: each vault is listed where it was made, but under a reference where something was first minted
 * into it under that.
 */
function listing(ledger: Ledger, filter: VaultFilter): (one: Found) => boolean {
  const listed = new Set<VaultId>();
  return (one) => {
    const mint = vaultOf(ledger, one);
    if (mint === null || !matches(ledger, one, filter)) return false;
    if (filter.reference === undefined) return mint.amountBefore === 0n;
    const vaultId = vaultIdOf(mint);
    if (listed.has(vaultId)) return false;
    listed.add(vaultId);
    return true;
  };
}

export function vaultsOf(context: EngineContext): Vaults {
  return {
    async get(applicationId, vaultId) {
      const { ledger } = context;
      const { applicationIndex } = ledger.application(applicationId);
      const place = placeOf(vaultId);
      batchAt(ledger, place);
      const vault = await readVault(ledger, place);
      if (vault.applicationIndex !== applicationIndex) throw new MintmarkError("vault_not_found");
      const [view] = await vaultViews(ledger, applicationIndex, [{ place, vault }]);
      if (view === undefined) throw new MintmarkError("vault_not_found");
      return view;
    },
    list: (applicationId, filter = {}) =>
      listOf(context, "vaults", applicationId, filter, async (start) => {
        const { ledger } = context;
        if (filter.tokenId !== undefined)
          return vaultsOfToken(ledger, applicationId, { ...filter, tokenId: filter.tokenId }, start);
        const { found, next } = await findPage(ledger, applicationId, filter, start, {
          type: "mint",
          order: "asc",
          wanted: listing(ledger, filter),
        });
        const located = await readVaults(
          ledger,
          found.flatMap((one) => vaultOf(ledger, one) ?? []),
        );
        return { data: await vaultViews(ledger, ledger.application(applicationId).applicationIndex, located), next };
      }),
    balances: (applicationId, userId, page = {}) =>
      listOf(context, "balances", applicationId, { ...page, userId } as PageOptions, (start) =>
        balancesFrom(context.ledger, applicationId, userId, start),
      ),
    async content(vaultId) {
      const { ledger } = context;
      const place = placeOf(vaultId);
      const vault = await readVault(ledger, place);
      requireNotVoid(ledger.voids, place);
      return contentOf(place, vault, ledger.assetAt(vault.assetIndex));
    },
  };
}

/**
 * What owners hold: each application sees its own.
 *
 * @example
 * for await (const { tokenId, amount } of engine.vaults.balances(applicationId, userId)) show(tokenId, amount);
 */
export interface Vaults {
  /** Rejects with `vault_not_found`, for another application's vault too. */
  get(applicationId: Uuid, vaultId: VaultId): Promise<Vault>;
  /** In the order in which they were made; shorter pages as with {@link Transactions.list}. */
  list(applicationId: Uuid, filter?: VaultFilter): List<Vault>;
  /**
   * What a user holds, by token, in the order of their first mints. An ERC-721 token is one vault, the others are sums
   * over vaults. The first call after opening reads every mint of the user, later ones what is new; after a withdrawal
   * or a void vault, all again. Shorter pages as with {@link Transactions.list}.
   */
  balances(applicationId: Uuid, userId: Uuid, page?: PageOptions): List<Balance>;
  /** What the vault commits to, of whichever application: public. Rejects with `vault_not_found`, `vault_void`. */
  content(vaultId: VaultId): Promise<VaultContent>;
}
