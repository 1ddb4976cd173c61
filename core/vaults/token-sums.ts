import { MintmarkError } from "../errors.ts";
import type { Ledger } from "../ledger/ledger.ts";
import type { Holding, TokenSum, TokenSums } from "../ledger/token-sums-cache.ts";
import type { Uuid } from "../model.ts";
import { packVaultId, type VaultPlace } from "../protocol/vault.ts";
import { readUserRequests, sequenceIn } from "../store/journal.ts";
import { activityKey, userTransactionKey } from "../store/store-keys.ts";
import { outputsOf, placeIn, readTransferList } from "./transfer-lists.ts";
import { decodeActivity, failureOf, heldBack, readVaults } from "./vaults.ts";

const ENTRIES_AT_ONCE = 64; // Journal entries per read

/** Adds the transactions from `sums.upTo` to another sequence. Reads mints from their records, without objects. */
export async function addTransactions(ledger: Ledger, holding: Holding, sums: TokenSums, to: number): Promise<void> {
  const { applicationIndex, userIndex } = holding;
  const at = (sequence: number) => userTransactionKey(applicationIndex, userIndex, sequence);
  let sequences: number[] = [];
  for await (const [, reference] of ledger.store.entries({ gte: at(sums.upTo), lt: at(to) })) {
    sequences.push(sequenceIn(reference));
    if (sequences.length < ENTRIES_AT_ONCE) continue;
    await addEntries(ledger, userIndex, sums, sequences);
    sequences = [];
  }
  if (sequences.length > 0) await addEntries(ledger, userIndex, sums, sequences);
  sums.upTo = to;
}

/** A vault that a mint made, with the sum that it belongs to. */
interface Made {
  readonly place: VaultPlace;
  readonly sum: TokenSum;
}

async function addEntries(ledger: Ledger, user: number, sums: TokenSums, sequences: readonly number[]): Promise<void> {
  const made: Made[] = [];
  for (const { sequence: journaledAt, mints: entries, transferId } of await readUserRequests(ledger.store, sequences)) {
    if (transferId !== null) {
      made.push(...(await addTransfers(ledger, user, sums, transferId)));
      continue;
    }
    let sequence = entries.header.firstSequence;
    for (const { userIndex, count } of entries.header.users) {
      for (const end = sequence + count; sequence < end; sequence++) {
        entries.next();
        if (userIndex !== user || ledger.standards[entries.assetIndex] === "erc721") continue;
        if (failureOf(ledger, entries, journaledAt) !== null) continue;
        const sum = sums.ofMint(entries.assetIndex, entries.blob, sequence);
        sum.amount += entries.amount;
        const { mode, batchNumber, slot } = entries;
        if (entries.amountBefore === 0n) made.push({ place: { mode, batchNumber, slot }, sum });
      }
    }
  }
  await addActivity(ledger, made);
}

/** Adds the vaults that a list of transfers has made for the user. */
async function addTransfers(ledger: Ledger, user: number, sums: TokenSums, transferId: Uuid): Promise<Made[]> {
  const list = await readTransferList(ledger, transferId);
  const gained = outputsOf(list).flatMap(({ position, transfer, holderIndex }) => {
    const place = placeIn(list, position);
    if (holderIndex !== user || place === null || ledger.standards[transfer.assetIndex] === "erc721") return [];
    return [{ place, sequence: list.firstSequence + position }];
  });
  const vaults = await readVaults(
    ledger,
    gained.map(({ place }) => place),
  );
  return vaults.flatMap(({ place, vault }, i) => {
    // A record that L1 does not count holds no units.
    if (vault.amount === 0n) return [];
    const sum = sums.ofMint(vault.assetIndex, vault.blob, (gained[i] as (typeof gained)[number]).sequence);
    sum.amount += vault.amount;
    return [{ place, sum }];
  });
}

/** Reads only vaults with withdrawals or transfers, which are few. */
async function addActivity(ledger: Ledger, made: readonly Made[]): Promise<void> {
  const records = await ledger.store.getMany(made.map(({ place }) => activityKey(packVaultId(place))));
  const touched = made.flatMap((one, i) => (records[i] === undefined ? [] : [{ ...one, record: records[i] }]));
  const vaults = await readVaults(
    ledger,
    touched.map(({ place }) => place),
  );
  for (const [i, { sum, record }] of touched.entries()) {
    const vault = vaults[i]?.vault;
    if (vault === undefined) throw new MintmarkError("store_corrupt", "A vault is missing.");
    const activity = decodeActivity(record);
    // What has moved on counts where it is now.
    const left = vault.amount - activity.transferred;
    sum.amount -= activity.transferred;
    sum.withdrawn += activity.withdrawn;
    sum.heldBack += activity.transferred > 0n ? left : heldBack(vault.amount, activity);
  }
}
