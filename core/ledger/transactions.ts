import type { Balance, TransactionFilter, VaultFilter } from "../engine-types.ts";
import { MintmarkError } from "../errors.ts";
import type { Page, Transaction, Uuid, Vault } from "../model.ts";
import type { VaultPlace } from "../protocol/vault.ts";
import { type Journaled, readEntry } from "../store/journal.ts";
import { decodeRecord } from "../store/layout.ts";
import { type MintEntry, type PlacedMint, vaultIdOf } from "../store/mint-entry.ts";
import { type BatchRecord, type VoidedRun, type WithdrawalRecord, withdrawalRecord } from "../store/records.ts";
import { endOf, type Range } from "../store/store.ts";
import {
  transactionKey,
  transactionsOf,
  userTransactionKey,
  userTransactionsOf,
  withdrawalKey,
} from "../store/store-keys.ts";
import { type Cursors, pageLimit, scopeOf } from "./cursor.ts";
import type { Ledger } from "./ledger.ts";
import { findMint, sequenceIn } from "./mint-results.ts";
import { findUser, readUsers } from "./users.ts";
import { batchIdOf, batchOfRecord, placeOf, readVault, readVaults, statusOf, vaultViews, voidAt } from "./vaults.ts";

/** Most transactions that one page looks at. */
const SCAN_BOUND = 50_000;

/** A transaction before its user's id is looked up. */
interface Found {
  readonly sequence: number;
  readonly userIndex: number;
  readonly source:
    | {
        readonly type: "mint";
        readonly time: number;
        readonly mintId: Uuid;
        readonly position: number;
        readonly mint: PlacedMint;
      }
    | {
        readonly type: "withdrawal";
        readonly record: WithdrawalRecord;
        readonly place: VaultPlace;
        readonly assetIndex: number;
        readonly blob: PlacedMint["blob"];
      };
}

/** One transaction of an application. Throws `transaction_not_found`. */
export async function readTransaction(
  ledger: Ledger,
  applicationId: Uuid,
  transactionId: string,
): Promise<Transaction> {
  const { applicationIndex } = ledger.application(applicationId);
  const [, id, position] = /^([0-9a-f-]{36})(?:\.(0|[1-9][0-9]{0,6}))?$/i.exec(transactionId) ?? [];
  if (id === undefined) throw new MintmarkError("transaction_not_found");
  const found =
    position === undefined
      ? await findWithdrawal(ledger, applicationIndex, id.toLowerCase())
      : await findMintTransaction(ledger, applicationId, id, Number(position));
  if (found === undefined) throw new MintmarkError("transaction_not_found");
  const [view] = await views(ledger, applicationIndex, [found]);
  if (view === undefined) throw new MintmarkError("transaction_not_found");
  return view;
}

async function findMintTransaction(ledger: Ledger, applicationId: Uuid, mintId: Uuid, position: number) {
  try {
    return mintTransactions(await findMint(ledger, applicationId, mintId))[position];
  } catch (error) {
    if (error instanceof MintmarkError && error.code === "mint_not_found") return undefined;
    throw error;
  }
}

async function findWithdrawal(
  ledger: Ledger,
  applicationIndex: number,
  withdrawalId: Uuid,
): Promise<Found | undefined> {
  const stored = await ledger.store.get(withdrawalKey(withdrawalId));
  if (stored === undefined) return undefined;
  const record = decodeRecord(withdrawalRecord, stored, `Withdrawal ${withdrawalId}`);
  return record.applicationIndex === applicationIndex ? withdrawalTransaction(ledger, record) : undefined;
}

async function withdrawalTransaction(ledger: Ledger, record: WithdrawalRecord): Promise<Found> {
  const place = placeOf(record.vaultId);
  const { assetIndex, blob } = await readVault(ledger, place);
  const { sequence, userIndex } = record;
  return { sequence, userIndex, source: { type: "withdrawal", record, place, assetIndex, blob } };
}

function mintTransactions({ time, entry }: Pick<Journaled<MintEntry>, "time" | "entry">): Found[] {
  const found: Found[] = [];
  for (const { userIndex, count } of entry.users) {
    for (let i = 0; i < count; i++) {
      const position = found.length;
      const mint = entry.mints[position];
      if (mint === undefined) throw new MintmarkError("store_corrupt", "A mint's entry ends early.");
      const source = { type: "mint" as const, time, mintId: entry.mintId, position, mint };
      found.push({ sequence: entry.firstSequence + position, userIndex, source });
    }
  }
  return found;
}

/** A page of an application's transactions. */
export async function listTransactions(
  ledger: Ledger,
  cursors: Cursors,
  applicationId: Uuid,
  filter: TransactionFilter,
): Promise<Page<Transaction>> {
  const { applicationIndex } = ledger.application(applicationId);
  const limit = pageLimit(filter.limit);
  const scope = scopeOf("transactions", applicationId, filter);
  const userIndex = await userOf(ledger, applicationId, filter.userId);
  if (userIndex === null) return { data: [], nextCursor: null, hasMore: false, limit };
  const order = filter.order ?? "desc";
  const scan = scanTransactions(ledger, applicationIndex, userIndex, order, cursors.read(filter.cursor, scope));
  const page = await collect(scan, limit, (found) => matches(ledger, found, filter));
  const data = await views(ledger, applicationIndex, page.found);
  const nextCursor = page.next === null ? null : cursors.issue(page.next, scope);
  return { data, nextCursor, hasMore: nextCursor !== null, limit };
}

/** A page of an application's vaults, in the order of the mints that made them. */
export async function listVaults(
  ledger: Ledger,
  cursors: Cursors,
  applicationId: Uuid,
  filter: VaultFilter,
): Promise<Page<Vault>> {
  const { applicationIndex } = ledger.application(applicationId);
  const limit = pageLimit(filter.limit);
  const scope = scopeOf("vaults", applicationId, filter);
  const userIndex = await userOf(ledger, applicationId, filter.userId);
  if (userIndex === null) return { data: [], nextCursor: null, hasMore: false, limit };
  const scan = scanTransactions(ledger, applicationIndex, userIndex, "asc", cursors.read(filter.cursor, scope));
  const page = await collect(scan, limit, (found) => makesVault(found) && matchesAsset(ledger, found, filter.assetId));
  const places = page.found.flatMap(({ source }) => (source.type === "mint" ? [source.mint] : []));
  const data = await vaultViews(ledger, applicationIndex, await readVaults(ledger, places));
  const nextCursor = page.next === null ? null : cursors.issue(page.next, scope);
  return { data, nextCursor, hasMore: nextCursor !== null, limit };
}

/** What a user holds of each token, over all vaults, in the order of their first mints. */
export async function readBalances(ledger: Ledger, applicationId: Uuid, userId: Uuid): Promise<readonly Balance[]> {
  const { applicationIndex, userIndex } = await findUser(ledger, applicationId, userId);
  const balances = new Map<string, Balance>();
  const places: PlacedMint[] = [];
  const flush = async (): Promise<void> => {
    const vaults = await vaultViews(ledger, applicationIndex, await readVaults(ledger, places.splice(0)));
    // A void vault holds nothing.
    for (const vault of vaults) if (vault.status !== "failed") addToBalance(balances, vault);
  };
  for await (const found of scanTransactions(ledger, applicationIndex, userIndex, "asc", null)) {
    if (found.source.type === "mint" && makesVault(found)) places.push(found.source.mint);
    if (places.length >= 1024) await flush();
  }
  await flush();
  return [...balances.values()];
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

/** The user of a filter: undefined when it names none, null when there is no such user. */
async function userOf(
  ledger: Ledger,
  applicationId: Uuid,
  userId: Uuid | undefined,
): Promise<number | null | undefined> {
  if (userId === undefined) return undefined;
  try {
    return (await findUser(ledger, applicationId, userId)).userIndex;
  } catch (error) {
    if (error instanceof MintmarkError && error.code === "user_not_found") return null;
    throw error;
  }
}

/**
 * The transactions of an application, or of one of its users, in the order of their sequence and after a position. Each index record
 * stands for a whole request, so the one that holds the position is read too.
 */
async function* scanTransactions(
  ledger: Ledger,
  application: number,
  user: number | undefined,
  order: "asc" | "desc",
  after: number | null,
): AsyncGenerator<Found> {
  const prefix = user === undefined ? transactionsOf(application) : userTransactionsOf(application, user);
  const at = (sequence: number): Buffer =>
    user === undefined ? transactionKey(application, sequence) : userTransactionKey(application, user, sequence);
  const bounds: Range =
    order === "asc"
      ? { gte: after === null ? prefix : await requestHolding(ledger, prefix, at(after)), lt: endOf(prefix) }
      : { gte: prefix, lt: after === null ? endOf(prefix) : at(after), reverse: true };
  for await (const [, reference] of ledger.store.entries(bounds)) {
    const found = await transactionsAt(ledger, sequenceIn(reference));
    const ordered = order === "asc" ? found : found.reverse();
    for (const one of ordered) {
      const beyond = after === null || (order === "asc" ? one.sequence > after : one.sequence < after);
      if (beyond && (user === undefined || one.userIndex === user)) yield one;
    }
  }
}

/** The key of the newest request that starts at or before `position`: it may go on after it. */
async function requestHolding(ledger: Ledger, prefix: Buffer, position: Buffer): Promise<Buffer> {
  for await (const [key] of ledger.store.entries({ gte: prefix, lte: position, reverse: true, limit: 1 })) return key;
  return prefix;
}

async function transactionsAt(ledger: Ledger, sequence: number): Promise<Found[]> {
  const { time, entry } = await readEntry(ledger.store, sequence);
  if (entry.kind === "mint") return mintTransactions({ time, entry });
  if (entry.kind !== "withdrawalRequested") throw new MintmarkError("store_corrupt", "An index record is damaged.");
  const found = await findWithdrawal(ledger, entry.applicationIndex, entry.withdrawalId);
  if (found === undefined) throw new MintmarkError("store_corrupt", `Withdrawal ${entry.withdrawalId} is missing.`);
  return [found];
}

/** As many matches as fit a page, and where the next one starts; null when nothing is left. */
async function collect(scan: AsyncIterable<Found>, limit: number, wanted: (found: Found) => boolean) {
  const found: Found[] = [];
  let scanned = 0;
  let last = 0;
  for await (const one of scan) {
    if (found.length === limit || scanned === SCAN_BOUND) return { found, next: last };
    if (wanted(one)) found.push(one);
    last = one.sequence;
    scanned++;
  }
  return { found, next: null };
}

function makesVault({ source }: Found): boolean {
  return source.type === "mint" && source.mint.amountBefore === 0n;
}

function assetIndexOf({ source }: Found): number {
  return source.type === "mint" ? source.mint.assetIndex : source.assetIndex;
}

function matchesAsset(ledger: Ledger, found: Found, assetId: Uuid | undefined): boolean {
  return assetId === undefined || assetIndexOf(found) === ledger.assetIndices.get(assetId.toLowerCase());
}

function placeOfFound({ source }: Found): VaultPlace {
  return source.type === "mint" ? source.mint : source.place;
}

function createdAtOf({ source }: Found): number {
  return source.type === "mint" ? source.time : source.record.createdAt;
}

function matches(ledger: Ledger, found: Found, filter: TransactionFilter): boolean {
  const { source } = found;
  const place = placeOfFound(found);
  const createdAt = createdAtOf(found);
  return (
    (filter.type === undefined || filter.type === source.type) &&
    matchesAsset(ledger, found, filter.assetId) &&
    (filter.vaultId === undefined || isVault(source, filter.vaultId)) &&
    (filter.batchId === undefined || filter.batchId === batchIdOf(place.mode, place.batchNumber)) &&
    (filter.mintId === undefined || (source.type === "mint" && source.mintId === filter.mintId.toLowerCase())) &&
    (filter.dataAvailabilityMode === undefined || filter.dataAvailabilityMode === place.mode) &&
    (filter.createdAfter === undefined || createdAt > filter.createdAfter) &&
    (filter.createdBefore === undefined || createdAt < filter.createdBefore) &&
    (filter.status === undefined || filter.status === statusOfFound(ledger, found))
  );
}

function isVault(source: Found["source"], vaultId: bigint): boolean {
  return source.type === "mint" ? vaultIdOf(source.mint) === vaultId : source.record.vaultId === vaultId;
}

function statusOfFound(ledger: Ledger, found: Found): Transaction["status"] {
  const { source } = found;
  return source.type === "mint" ? statusOf(ledger, source.mint) : source.record.status;
}

async function views(ledger: Ledger, applicationIndex: number, found: readonly Found[]): Promise<Transaction[]> {
  const indices = [...new Set(found.map(({ userIndex }) => userIndex))];
  const users = await readUsers(ledger, applicationIndex, indices);
  const userIds = new Map(indices.map((index, i) => [index, users[i]?.userId ?? ""]));
  return found.map((one) => view(ledger, one, userIds.get(one.userIndex) ?? ""));
}

function view(ledger: Ledger, found: Found, userId: Uuid): Transaction {
  const { source, sequence } = found;
  const place = placeOfFound(found);
  const common = {
    sequence,
    userId,
    status: statusOfFound(ledger, found),
    assetId: ledger.assetAt(assetIndexOf(found)).assetId,
    dataAvailabilityMode: place.mode,
    batchId: batchIdOf(place.mode, place.batchNumber),
  };
  if (source.type === "mint") {
    const { mint, mintId } = source;
    const batch = batchOfRecord(ledger, mint);
    const voided = voidAt(ledger, mint);
    return {
      ...common,
      type: "mint",
      transactionId: `${mintId}.${source.position}`,
      mintId,
      vaultId: vaultIdOf(mint),
      mintingBlob: mint.blob,
      amount: mint.amount,
      l1TxHash: voided === null ? batch.l1TxHash : null,
      l1BlockNumber: voided === null ? batch.l1BlockNumber : null,
      failure: voided?.failure ?? null,
      timestamps: mintTimes(source.time, batch, voided),
    };
  }
  const { record, blob } = source;
  return {
    ...common,
    type: "withdrawal",
    transactionId: record.withdrawalId,
    mintId: null,
    vaultId: record.vaultId,
    mintingBlob: blob,
    amount: record.quantity,
    l1TxHash: record.l1TxHash,
    l1BlockNumber: record.l1BlockNumber,
    failure: record.failure,
    timestamps: present({
      accepted: record.createdAt,
      submitted: record.submittedAt,
      settled: record.settledAt,
      finalized: record.finalizedAt,
      failed: record.failedAt,
    }),
  };
}

function mintTimes(accepted: number, batch: BatchRecord, voided: VoidedRun | null): Transaction["timestamps"] {
  if (voided !== null) return present({ accepted, batched: batch.sealedAt, failed: voided.voidedAt });
  const { sealedAt: batched, submittedAt: submitted, settledAt: settled, finalizedAt: finalized } = batch;
  return present({ accepted, batched, submitted, settled, finalized });
}

/** Only the times that have come. */
function present(times: Partial<Record<keyof Transaction["timestamps"], number | null>>): Transaction["timestamps"] {
  return Object.fromEntries(Object.entries(times).filter(([, time]) => time !== null));
}
