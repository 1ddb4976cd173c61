import { MintmarkError } from "../../errors.ts";
import type { Balance, VaultFilter } from "../../list-types.ts";
import type { Page, Uuid, Vault, VaultId } from "../../model.ts";
import type { PlacedMint } from "../../store/mint-entry.ts";
import type { Cursors } from "../cursor.ts";
import type { Ledger } from "../ledger.ts";
import { durableAsset } from "../tenants/assets.ts";
import { findUser } from "../tenants/users.ts";
import { findPage } from "../transactions/transaction-page.ts";
import { type Found, type Scan, scanTransactions } from "../transactions/transaction-scan.ts";
import { matchesAsset } from "../transactions/transactions.ts";
import { batchAt, placeOf, readVault, readVaults, vaultViews } from "./vaults.ts";

/** Vaults that are read together. */
const VAULTS_AT_ONCE = 1_024;

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
    wanted: (one) => vaultMadeBy(one) !== null && matchesAsset(ledger, one, filter.assetId),
  });
  const places = found.flatMap((one) => vaultMadeBy(one) ?? []);
  return { data: await vaultViews(ledger, applicationIndex, await readVaults(ledger, places)), ...rest };
}

/**
 * What a user holds of each token: ERC-721 tokens, each of which is one vault, as they are come by, then the sums of the others. In memory
 * are the vaults that are read together and the sums.
 */
export async function* readBalances(ledger: Ledger, applicationId: Uuid, userId: Uuid): AsyncGenerator<Balance> {
  const sums = new Map<string, Balance>();
  for await (const vault of vaultsOf(ledger, applicationId, userId)) {
    // A void vault holds nothing.
    if (vault.status === "failed") continue;
    if (durableAsset(ledger, vault.assetId).standard === "erc721") yield balanceOf(vault);
    else addTo(sums, vault);
  }
  yield* sums.values();
}

/** All vaults of a user, in the order of the mints that made them. */
async function* vaultsOf(ledger: Ledger, applicationId: Uuid, userId: Uuid): AsyncGenerator<Vault> {
  const { applicationIndex, userIndex } = await findUser(ledger, applicationId, userId);
  const within = { from: 0, to: ledger.application(applicationId).nextSequence };
  const read = async (places: readonly PlacedMint[]) =>
    vaultViews(ledger, applicationIndex, await readVaults(ledger, places));
  const scan: Scan = { applicationIndex, userIndex, type: "mint", order: "asc", within, after: null };
  const places: PlacedMint[] = [];
  for await (const found of scanTransactions(ledger, scan)) {
    const place = vaultMadeBy(found);
    if (place !== null) places.push(place);
    if (places.length >= VAULTS_AT_ONCE) yield* await read(places.splice(0));
  }
  yield* await read(places);
}

/** The vault that a mint made; null when it was added to one, and for withdrawals. */
function vaultMadeBy({ source }: Found): PlacedMint | null {
  return source.type === "mint" && source.mint.amountBefore === 0n ? source.mint : null;
}

function balanceOf({ assetId, tokenId, mintingBlob, amount, availableBalance, withdrawnBalance }: Vault): Balance {
  return { assetId, tokenId, mintingBlob, amount, available: availableBalance, withdrawn: withdrawnBalance };
}

function addTo(sums: Map<string, Balance>, vault: Vault): void {
  const key = `${vault.assetId}:${vault.mintingBlob}`;
  const one = balanceOf(vault);
  const sum = sums.get(key) ?? { ...one, amount: 0n, available: 0n, withdrawn: 0n };
  sums.set(key, {
    ...one,
    amount: sum.amount + one.amount,
    available: sum.available + one.available,
    withdrawn: sum.withdrawn + one.withdrawn,
  });
}
