import type { Ledger } from "../ledger/ledger.ts";
import type { PageStart } from "../ledger/list.ts";
import type { Holding, TokenSum, TokenSums } from "../ledger/token-sums-cache.ts";
import { findUser } from "../ledger/user-records.ts";
import type { Uuid, Vault, VaultId } from "../model.ts";
import { packVaultId, unpackVaultId, type VaultPlace } from "../protocol/vault.ts";
import type { EntryOf } from "../store/entries.ts";
import { readUserRequests, sequenceIn } from "../store/journal.ts";
import { keyOf } from "../store/store-keys.ts";
import { fastTokenIdOf } from "../store/token-id.ts";
import {
  collect,
  type Found,
  READ_PER_UNIT,
  type ScanOptions,
  ScanProgress,
  SLOT_WEIGHT,
  WITHDRAWAL_WEIGHT,
} from "./transaction-scan.ts";
import { outputsOf, placeIn, readTransferList } from "./transfer-lists.ts";
import { amountIn, decodeActivity, failureOf, heldBack, readVaults, vaultViews } from "./vaults.ts";

/**
 * A user's balances by token, in the order of first mints: each ERC-721 vault, other vaults summed,
 * no void ones.
 */
export async function balancesFrom(
  ledger: Ledger,
  applicationId: Uuid,
  userId: Uuid,
  { after, limit }: PageStart,
  options: ScanOptions,
) {
  const summing = new ScanProgress(options);
  const holding = await findUser(ledger, applicationId, userId);
  const { applicationIndex, userIndex } = holding;
  const within = { from: 0, to: ledger.tenants.application(applicationId, null).nextSequence };
  const sums = await ledger.readers.tokenSums.of(
    holding,
    within.to,
    (sums) => addTransactions(ledger, holding, sums, within.to, summing),
    (vaultIds) => holdersOf(ledger, vaultIds),
  );
  // The sums have no bound, and the page has: it tells of both, and counts its own part.
  const onExamined = (transactions: number) => options.onExamined?.(summing.done + transactions);
  const work = new ScanProgress({ onExamined });
  const parts = [{ users: new Set([userIndex]), within }] as const;
  const scan = { applicationIndex, parts, order: "asc", after } as const;
  const wanted = (one: Found) => isFirst(ledger, sums, one, userIndex);
  const { found, next } = await collect(ledger, scan, limit, wanted, work);
  await work.tell();
  return { data: await balancesOf(ledger, applicationIndex, sums, found), next };
}

async function holdersOf(ledger: Ledger, vaultIds: readonly VaultId[]): Promise<number[]> {
  const vaults = await readVaults(ledger, vaultIds.map(unpackVaultId), null);
  return vaults.map(({ vault }) => vault.userIndex);
}

/**
 * Whether a mint or a transfer is the first valid one of its token. That one gives the token its
 * place in the list.
 */
function isFirst(ledger: Ledger, sums: TokenSums, found: Found, userIndex: number): boolean {
  const { sequence, source, made, assetIndex, mintingBlob } = found;
  const isUnique = ledger.tenants.standards[assetIndex] === "erc721";
  if (made === null) return false;
  if (source.type === "transfer" && source.output.holderIndex !== userIndex) return false;
  if (source.type === "mint") {
    if (source.mint.amountBefore !== 0n) return false;
    if (isUnique) return failureOf(ledger, source.mint, source.journalSequence) === null;
  }
  return isUnique || sums.of(assetIndex, mintingBlob)?.first === sequence;
}

async function balancesOf(
  ledger: Ledger,
  applicationIndex: number,
  sums: TokenSums,
  firsts: readonly Found[],
) {
  const unique = firsts.filter(
    ({ assetIndex }) => ledger.tenants.standards[assetIndex] === "erc721",
  );
  const places = unique.flatMap(({ made }) => made ?? []);
  const vaults = await vaultViews(ledger, applicationIndex, await readVaults(ledger, places, null));
  const vaultOf = new Map(unique.map((first, i) => [first, vaults[i]]));
  return firsts.flatMap((first) => {
    const vault = vaultOf.get(first);
    const sum = vault === undefined ? sums.of(first.assetIndex, first.mintingBlob) : undefined;
    if (sum !== undefined) return sum.amount === 0n ? [] : [balanceOfSum(ledger, sum)];
    // A vault that was transferred is its receiver's balance now.
    return vault === undefined || vault.amount === vault.transferredBalance
      ? []
      : [balanceOfVault(vault)];
  });
}

function balanceOfVault({
  assetId,
  quantum,
  decimals,
  name,
  symbol,
  tokenId,
  mintingBlob,
  amount,
  amountDecimal,
  ...vault
}: Vault): Balance {
  const { availableBalance: available, withdrawnBalance: withdrawn } = vault;
  const token = { assetId, quantum, decimals, name, symbol, tokenId, mintingBlob };
  return { ...token, amount, amountDecimal, available, withdrawn };
}

function balanceOfSum(
  ledger: Ledger,
  { assetIndex, mintingBlob, amount, heldBack, withdrawn }: TokenSum,
): Balance {
  const asset = ledger.tenants.assetAt(assetIndex);
  return {
    assetId: asset.assetId,
    tokenId: fastTokenIdOf(asset.standard, asset.mintingBlobScheme, mintingBlob),
    mintingBlob,
    ...amountIn(asset, amount),
    available: amount - heldBack,
    withdrawn,
  };
}

/** A user's balance of one token, over all vaults. */
export interface Balance
  extends Pick<Vault, "assetId" | "quantum" | "decimals" | "tokenId" | "mintingBlob" | "amount"> {
  readonly name: string;
  readonly symbol: string;
  readonly amountDecimal: string;
  readonly available: bigint;
  readonly withdrawn: bigint;
}

const ENTRIES_AT_ONCE = 64; // Journal entries per read
const MADE_AT_ONCE = 256; // Vaults whose withdrawals are looked up at once

/**
 * Adds the transactions from `sums.upTo` to another sequence. Reads mints from their records,
 * without objects.
 */
async function addTransactions(
  ledger: Ledger,
  holding: Holding,
  sums: TokenSums,
  to: number,
  work = new ScanProgress(),
): Promise<void> {
  const { applicationIndex, userIndex } = holding;
  const at = (sequence: number) => keyOf.userTransaction(applicationIndex, userIndex, sequence);
  let sequences: number[] = [];
  for await (const [, reference] of ledger.store.entries({ gte: at(sums.upTo), lt: at(to) })) {
    sequences.push(sequenceIn(reference));
    if (sequences.length < ENTRIES_AT_ONCE) continue;
    await addEntries(ledger, userIndex, sums, sequences, work);
    sequences = [];
  }
  if (sequences.length > 0) await addEntries(ledger, userIndex, sums, sequences, work);
  sums.upTo = to;
}

/** A vault that a mint made, with the sum that it belongs to. */
interface Made {
  readonly place: VaultPlace;
  readonly sum: TokenSum;
}

async function addEntries(
  ledger: Ledger,
  user: number,
  sums: TokenSums,
  sequences: readonly number[],
  work: ScanProgress,
): Promise<void> {
  let made: Made[] = [];
  const addMade = async () => {
    await addActivity(ledger, made);
    made = [];
    await work.pause();
  };
  for (const request of await readUserRequests(ledger.store, sequences)) {
    await work.pause();
    if ("transferId" in request) {
      made.push(...(await addTransfers(ledger, user, sums, request.transferId, work)));
      continue;
    }
    if ("deposit" in request) {
      work.done += WITHDRAWAL_WEIGHT;
      made.push(...(await addDeposit(ledger, sums, request.deposit)));
      continue;
    }
    const { sequence: journaledAt, mints: entries } = request;
    let sequence = entries.header.firstSequence;
    let others = 0;
    for (const { userIndex, count } of entries.header.users) {
      if (userIndex === user) work.done += count;
      else others += count;
      for (const end = sequence + count; sequence < end; sequence++) {
        entries.next();
        if (userIndex !== user || ledger.tenants.standards[entries.assetIndex] === "erc721")
          continue;
        if (failureOf(ledger, entries, journaledAt) !== null) continue;
        const sum = sums.ofMint(entries.assetIndex, entries.mintingBlob, sequence);
        sum.amount += entries.amount;
        const { mode, batchNumber, slot } = entries;
        if (entries.amountBefore === 0n) made.push({ place: { mode, batchNumber, slot }, sum });
        if (made.length === MADE_AT_ONCE) await addMade();
      }
    }
    work.done += Math.floor(others / READ_PER_UNIT);
  }
  await addMade();
}

/** Adds the vaults that a list of transfers has made for the user. */
async function addTransfers(
  ledger: Ledger,
  user: number,
  sums: TokenSums,
  transferId: Uuid,
  work: ScanProgress,
): Promise<Made[]> {
  const list = await readTransferList(ledger, transferId);
  const outputs = outputsOf(list);
  work.done += outputs.length * SLOT_WEIGHT + WITHDRAWAL_WEIGHT;
  const gained = outputs.flatMap(({ position, transfer, holderIndex }) => {
    const place = placeIn(list, position);
    if (
      holderIndex !== user ||
      place === null ||
      ledger.tenants.standards[transfer.assetIndex] === "erc721"
    )
      return [];
    return [{ place, sequence: list.firstSequence + position }];
  });
  const places = gained.map(({ place }) => place);
  const vaults = await readVaults(ledger, places, null);
  return vaults.flatMap(({ place, vault }, i) => {
    // A record that L1 does not count holds no units.
    if (vault.amount === 0n) return [];
    const sum = sums.ofMint(
      vault.assetIndex,
      vault.mintingBlob,
      (gained[i] as (typeof gained)[number]).sequence,
    );
    sum.amount += vault.amount;
    return [{ place, sum }];
  });
}

/** Adds a vault that L1 made for the user. */
async function addDeposit(
  ledger: Ledger,
  sums: TokenSums,
  { making, slot, assetIndex, sequence }: EntryOf<"deposited">,
): Promise<Made[]> {
  if (ledger.tenants.standards[assetIndex] === "erc721") return [];
  const place = { mode: "made", batchNumber: making, slot } as const;
  const { vault } = (await readVaults(ledger, [place], null))[0]!;
  const sum = sums.ofMint(assetIndex, vault.mintingBlob, sequence);
  sum.amount += vault.amount;
  return [{ place, sum }];
}

/** Reads only vaults with withdrawals or transfers, which are few. */
async function addActivity(ledger: Ledger, made: readonly Made[]): Promise<void> {
  const records = await ledger.store.getMany(
    made.map(({ place }) => keyOf.activity(packVaultId(place))),
  );
  const touched = made.flatMap((one, i) =>
    records[i] === undefined ? [] : [{ ...one, record: records[i] }],
  );
  const places = touched.map(({ place }) => place);
  const vaults = await readVaults(ledger, places, null);
  for (const [i, { sum, record }] of touched.entries()) {
    const { vault } = vaults[i]!;
    const activity = decodeActivity(record);
    // Units that have moved on count where they are now.
    const left = vault.amount - activity.transferred;
    sum.amount -= activity.transferred;
    sum.withdrawn += activity.withdrawn;
    sum.heldBack += activity.transferred > 0n ? left : heldBack(vault.amount, activity);
  }
}
