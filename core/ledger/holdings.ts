import type { Balance, VaultFilter } from "../list-types.ts";
import type { Page, Uuid, Vault } from "../model.ts";
import type { PlacedMint } from "../store/mint-entry.ts";
import type { Cursors } from "./cursor.ts";
import type { Ledger } from "./ledger.ts";
import { findPage } from "./transaction-page.ts";
import { type Found, type Scan, scanTransactions } from "./transaction-scan.ts";
import { matchesAsset } from "./transactions.ts";
import { findUser } from "./users.ts";
import { readVaults, vaultViews } from "./vaults.ts";

/** Vaults that are read together. */
const VAULTS_AT_ONCE = 1_024;

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

/** What a user holds of each token, over all vaults, in the order of their first mints. */
export async function readBalances(ledger: Ledger, applicationId: Uuid, userId: Uuid): Promise<readonly Balance[]> {
  const { applicationIndex, userIndex } = await findUser(ledger, applicationId, userId);
  const within = { from: 0, to: ledger.application(applicationId).nextSequence };
  const balances = new Map<string, Balance>();
  const places: PlacedMint[] = [];
  const flush = async (): Promise<void> => {
    const vaults = await vaultViews(ledger, applicationIndex, await readVaults(ledger, places.splice(0)));
    // A void vault holds nothing.
    for (const vault of vaults) if (vault.status !== "failed") addToBalance(balances, vault);
  };
  const scan: Scan = { applicationIndex, userIndex, type: "mint", order: "asc", within, after: null };
  for await (const found of scanTransactions(ledger, scan)) {
    const place = vaultMadeBy(found);
    if (place !== null) places.push(place);
    if (places.length >= VAULTS_AT_ONCE) await flush();
  }
  await flush();
  return [...balances.values()];
}

/** The vault that a mint made; null when it was added to one, and for withdrawals. */
function vaultMadeBy({ source }: Found): PlacedMint | null {
  return source.type === "mint" && source.mint.amountBefore === 0n ? source.mint : null;
}

function addToBalance(balances: Map<string, Balance>, vault: Vault): void {
  const key = `${vault.assetId}:${vault.mintingBlob}`;
  const sum = balances.get(key);
  balances.set(key, {
    assetId: vault.assetId,
    tokenId: vault.tokenId,
    mintingBlob: vault.mintingBlob,
    amount: (sum?.amount ?? 0n) + vault.amount,
    available: (sum?.available ?? 0n) + vault.availableBalance,
    withdrawn: (sum?.withdrawn ?? 0n) + vault.withdrawnBalance,
  });
}
