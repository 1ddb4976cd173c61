import { MintmarkError } from "../errors.ts";
import type { EngineContext } from "../ledger/context.ts";
import type { Ledger } from "../ledger/ledger.ts";
import { type List, listOf, type PageOptions } from "../ledger/list.ts";
import type { Address, Uuid, Vault, VaultId } from "../model.ts";
import type { VaultContent } from "../ports.ts";
import { packVaultId } from "../protocol/vault.ts";
import { contentOf } from "../sealing/contents.ts";
import { requireNotVoid } from "../sealing/void-runs.ts";
import { type Balance, balancesFrom } from "./balances.ts";
import { listOwned, type OwnedVault } from "./owned.ts";
import { isWanted, vaultsOfToken } from "./token-vaults.ts";
import type { VaultFilter } from "./transaction-range.ts";
import { type Found, type ScanOptions, vaultOf } from "./transaction-scan.ts";
import { findPage } from "./transactions.ts";
import { placeOf, readVault, readVaults, vaultViews } from "./vaults.ts";

/**
 * Whether a mint lists its vault: the one that made it, or by reference the first one under that
 * reference.
 */
function listing(ledger: Ledger, filter: VaultFilter): (one: Found) => boolean {
  const listed = new Set<VaultId>();
  return (one) => {
    const place = vaultOf(ledger, one);
    if (place === null) return false;
    if (filter.reference === undefined)
      return one.source.type !== "mint" || one.source.mint.amountBefore === 0n;
    const vaultId = packVaultId(place);
    if (listed.has(vaultId)) return false;
    listed.add(vaultId);
    return true;
  };
}

export function vaultsOf(context: EngineContext): Vaults {
  return {
    async get(applicationId, vaultId) {
      const { ledger } = context;
      const { applicationIndex } = ledger.tenants.application(applicationId, null);
      const place = placeOf(vaultId);
      const vault = await readVault(ledger, place);
      if (vault.applicationIndex !== applicationIndex || vault.amount === 0n)
        throw new MintmarkError("vault_not_found");
      return (await vaultViews(ledger, applicationIndex, [{ place, vault }]))[0] as Vault;
    },
    list: (applicationId, filter = {}, options = {}) =>
      listOf(context, "vaults", applicationId, filter, async (start) => {
        const { ledger } = context;
        if (filter.tokenId !== undefined)
          return vaultsOfToken(
            ledger,
            applicationId,
            { ...filter, tokenId: filter.tokenId },
            start,
            options,
          );
        const { userId, ownerAddress, reference, dataAvailabilityMode, order = "asc" } = filter;
        const made = dataAvailabilityMode === "made" ? ("deposit" as const) : undefined;
        const narrowed = { ...filter, type: reference === undefined ? made : ("mint" as const) };
        const listed = listing(ledger, filter);
        const { found, next } = await findPage(
          ledger,
          applicationId,
          narrowed,
          order,
          start,
          options,
          listed,
        );
        const places = found.flatMap((one) => vaultOf(ledger, one) ?? []);
        const { applicationIndex } = ledger.tenants.application(applicationId, null);
        const views = await vaultViews(
          ledger,
          applicationIndex,
          await readVaults(ledger, places, null),
        );
        // A transfer is found under its giver, too, and in the mode of the vault that it spends.
        const wanted = { userId, ownerAddress, dataAvailabilityMode };
        return { data: views.filter((vault) => isWanted(vault, wanted)), next };
      }),
    owned: (owner, page = {}, options = {}) => listOwned(context, owner, page, options),
    balances: (applicationId, userId, page = {}, options = {}) =>
      listOf(context, "balances", applicationId, { ...page, userId } as PageOptions, (start) =>
        balancesFrom(context.ledger, applicationId, userId, start, options),
      ),
    async content(vaultId) {
      const { ledger } = context;
      const place = placeOf(vaultId);
      const vault = await readVault(ledger, place);
      requireNotVoid(ledger.batches.voids, place, null);
      return contentOf(place, vault, ledger.tenants.assetAt(vault.assetIndex));
    },
  };
}

/**
 * Vaults and balances. An application sees only its own.
 *
 * @example
 * for await (const { tokenId, amount } of engine.vaults.balances(applicationId, userId))
 * show(tokenId, amount);
 */
export interface Vaults {
  /** Rejects with `vault_not_found`, also for another application's vault. */
  get(applicationId: Uuid, vaultId: VaultId): Promise<Vault>;
  /**
   * Oldest first, unless the filter says otherwise. Pages can be short, as with {@link
   * Transactions.list}.
   */
  list(applicationId: Uuid, filter?: VaultFilter, options?: ScanOptions): List<Vault>;
  /**
   * The vaults of an owner in all applications: those of one user after the other, each user's
   * newest first. A page examines a bounded number of transactions, so it can be short.
   */
  owned(owner: Address, page?: PageOptions, options?: ScanOptions): List<OwnedVault>;
  /**
   * A user's balances by token, in the order of first mints. An ERC-721 balance is one vault;
   * others are sums over vaults. The first call after opening reads every mint of the user, later
   * calls only new ones. A withdrawal or a void vault makes the next call read all again. Pages can
   * be short, as with {@link Transactions.list}.
   */
  balances(
    applicationId: Uuid,
    userId: Uuid,
    page?: PageOptions,
    options?: ScanOptions,
  ): List<Balance>;
  /**
   * The public content of a vault of any application. Rejects with `vault_not_found`, `vault_void`.
   */
  content(vaultId: VaultId): Promise<VaultContent>;
}
