import type { MintResult, MintTransaction } from "./engine-types.ts";
import { MintmarkError } from "./errors.ts";
import { type Journaled, readMint } from "./journal.ts";
import type { Ledger } from "./ledger.ts";
import { type MintEntry, type PlacedMint, vaultIdOf } from "./mint-entry.ts";
import type { Address, Status, Uuid, Vault, VaultId } from "./model.ts";
import { mintKey } from "./store-keys.ts";
import { fastTokenIdOf } from "./token-id.ts";
import { readUsers } from "./users.ts";
import { requireUuid } from "./validate.ts";
import { batchIdOf, batchOfRecord, readVaults, statusOf, vaultViews } from "./vaults.ts";

interface Holder {
  readonly userId: Uuid;
  readonly ownerAddress: Address;
}

/** The journal sequence that an index record holds. */
export function sequenceIn(reference: Buffer): number {
  if (reference.length !== 8) throw new MintmarkError("store_corrupt", "An index record is damaged.");
  return Number(reference.readBigUInt64BE());
}

/** The answer to a mint as it was when it was accepted: everything in it is in its journal entry. */
export function acceptedResult(
  ledger: Ledger,
  { time, entry }: Pick<Journaled<MintEntry>, "time" | "entry">,
  holders: readonly Holder[],
  replayed: boolean,
): MintResult {
  const vaults = new Map<VaultId, Vault>();
  const transactions = transactionsOf(entry, () => "accepted");
  let next = 0;
  for (const [i, { count }] of entry.users.entries()) {
    const holder = holders[i];
    for (let j = 0; j < count; j++) {
      const mint = entry.mints[next];
      const vaultId = transactions[next++]?.vaultId;
      if (mint === undefined || holder === undefined || vaultId === undefined)
        throw new Error("a mint's user is missing");
      vaults.set(vaultId, acceptedVault(ledger, vaultId, mint, holder, time));
    }
  }
  return { mintId: entry.mintId, vaults: [...vaults.values()], transactions, replayed };
}

function acceptedVault(ledger: Ledger, vaultId: VaultId, mint: PlacedMint, holder: Holder, time: number): Vault {
  const asset = ledger.assetAt(mint.assetIndex);
  const amount = mint.amountBefore + mint.amount;
  return {
    vaultId,
    userId: holder.userId,
    ownerAddress: holder.ownerAddress,
    assetId: asset.assetId,
    assetType: asset.assetType,
    mintingBlob: mint.blob,
    tokenId: fastTokenIdOf(asset.standard, asset.blobScheme, mint.blob),
    dataAvailabilityMode: mint.mode,
    amount,
    availableBalance: amount,
    withdrawnBalance: 0n,
    batchId: batchIdOf(mint.mode, mint.batchNumber),
    status: "accepted",
    createdAt: time - mint.age,
    updatedAt: time,
  };
}

function transactionsOf(entry: MintEntry, status: (mint: PlacedMint) => Status): MintTransaction[] {
  const transactions: MintTransaction[] = [];
  for (const [userIndex, { count }] of entry.users.entries()) {
    for (let mintIndex = 0; mintIndex < count; mintIndex++) {
      const mint = entry.mints[transactions.length];
      if (mint === undefined) throw new MintmarkError("store_corrupt", "A mint's entry ends early.");
      const transactionId = `${entry.mintId}.${transactions.length}`;
      transactions.push({ transactionId, userIndex, mintIndex, vaultId: vaultIdOf(mint), status: status(mint) });
    }
  }
  return transactions;
}

/** The first answer to the mint at this journal sequence, again. */
export async function replayedResult(ledger: Ledger, sequence: number): Promise<MintResult> {
  const mint = await readMint(ledger.store, sequence);
  const { applicationIndex, users } = mint.entry;
  const holders = await readUsers(
    ledger,
    applicationIndex,
    users.map(({ userIndex }) => userIndex),
  );
  return acceptedResult(ledger, mint, holders, true);
}

/** The journal entry of an application's mint. Throws `mint_not_found`. */
export async function findMint(ledger: Ledger, applicationId: Uuid, mintId: Uuid): Promise<Journaled<MintEntry>> {
  const { applicationIndex } = ledger.application(applicationId);
  const reference = await ledger.store.get(mintKey(requireUuid("mintId", mintId)));
  const found = reference === undefined ? null : await readMint(ledger.store, sequenceIn(reference));
  if (found === null || found.entry.applicationIndex !== applicationIndex) throw new MintmarkError("mint_not_found");
  return found;
}

/** A mint with its vaults and statuses as they are now. Throws `mint_not_found`. */
export async function presentResult(ledger: Ledger, applicationId: Uuid, mintId: Uuid): Promise<MintResult> {
  const { entry } = await findMint(ledger, applicationId, mintId);
  const places = new Map(entry.mints.map((mint) => [vaultIdOf(mint), mint]));
  const vaults = await vaultViews(ledger, entry.applicationIndex, await readVaults(ledger, [...places.values()]));
  const transactions = transactionsOf(entry, (mint) => statusOf(batchOfRecord(ledger, mint)));
  return { mintId: entry.mintId, vaults, transactions, replayed: false };
}
