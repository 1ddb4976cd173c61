import { MintmarkError } from "../errors.ts";
import type { Ledger } from "../ledger/ledger.ts";
import type { SortOrder } from "../ledger/list.ts";
import type { Uuid, VaultId } from "../model.ts";
import type { VaultPlace } from "../protocol/vault.ts";
import type { EntryOf } from "../store/entries.ts";
import { type Journaled, readEntry, sequenceIn } from "../store/journal.ts";
import { decodeRecord } from "../store/layout.ts";
import type { MintJournalEntry, PlacedMint } from "../store/mint-entry.ts";
import type { StoreReader } from "../store/ports.ts";
import {
  type TransferListRecord,
  type WithdrawalRecord,
  withdrawalRecord,
} from "../store/records.ts";
import { blockOf, firstOfBlock, keyOf, prefixOf, requestByKey } from "../store/store-keys.ts";
import type { StoredVault } from "../store/vault-columns.ts";
import { Heap } from "./heap.ts";
import { indexesOfUsers, type TransactionRange } from "./transaction-range.ts";
import {
  decodeTransferList,
  type ListOutput,
  outputsOf,
  placeIn,
  readTransferList,
} from "./transfer-lists.ts";
import { hasSlot, lostAt, placeOf, readVault, readVaults } from "./vaults.ts";

/** A transaction without its user's id. */
export interface Found {
  readonly sequence: number;
  readonly userIndex: number;
  readonly place: VaultPlace; // The vault that is minted, withdrawn or spent
  readonly made: VaultPlace | null; // The vault that it makes; null for none, and for none yet
  readonly assetIndex: number;
  readonly mintingBlob: PlacedMint["mintingBlob"];
  readonly source:
    | {
        readonly type: "mint";
        readonly journalSequence: number;
        readonly time: number;
        readonly mintId: Uuid;
        readonly position: number;
        readonly mint: PlacedMint;
        readonly reference: string | null; // The caller's own name for it
      }
    | { readonly type: "withdrawal"; readonly record: WithdrawalRecord }
    | { readonly type: "deposit"; readonly time: number; readonly vault: StoredVault }
    | {
        readonly type: "transfer";
        readonly list: TransferListRecord;
        readonly output: ListOutput;
      };
}

/** Whether a transaction is one of these users': of a transfer, who gives or who gets. */
function isOf(users: ReadonlySet<number>, { userIndex, source }: Found): boolean {
  if (users.has(userIndex)) return true;
  return (
    source.type === "transfer" &&
    source.output.holderIndex !== null &&
    users.has(source.output.holderIndex)
  );
}

interface Scan {
  readonly applicationIndex: number;
  readonly parts: readonly TransactionRange[]; // Parts in order, without overlap
  readonly order: SortOrder;
  readonly after: number | null; // End of the page before
}

/** The requests that may hold a transaction of the part, from the most selective index. */
function requestsOf(
  { store }: Ledger,
  application: number,
  {
    users,
    reference,
    marks = [],
    indexes = users && indexesOfUsers(application, users),
  }: TransactionRange,
  range: RequestRange,
  work: ScanProgress,
): AsyncGenerator<number> {
  if (reference !== undefined)
    return requestsIn(store, prefixOf.mintReference(application, reference), range);
  if (indexes?.length === 1) return requestsIn(store, indexes[0]!, range);
  if (indexes !== undefined) return requestsInAny(store, application, indexes, range, work);
  if (marks.length > 0) return requestsInBlocks(store, application, marks, range);
  return requestsIn(store, prefixOf.transaction(application), range);
}

async function transactionsAt(ledger: Ledger, sequence: number): Promise<Found[]> {
  const { time, entry } = await readEntry(ledger.store, sequence);
  if (entry.kind === "mint") return mintTransactions({ sequence, time, entry });
  if (entry.kind === "transfersRequested")
    return transfersIn(ledger, await readTransferList(ledger, entry.transferId));
  if (entry.kind === "deposited") return [await depositIn(ledger, { sequence, time, entry })];
  if (entry.kind !== "withdrawalRequested")
    throw new MintmarkError("store_corrupt", "An index record is damaged.");
  const found = await findWithdrawal(ledger, entry.applicationIndex, entry.withdrawalId);
  if (found === undefined)
    throw new MintmarkError("store_corrupt", `Withdrawal ${entry.withdrawalId} is missing.`);
  return [found];
}

export function mintTransactions({
  sequence: journalSequence,
  time,
  entry,
}: Journaled<MintJournalEntry>): Found[] {
  const { mintId, firstSequence, references } = entry;
  const users = entry.users.flatMap(({ userIndex, count }) => Array<number>(count).fill(userIndex));
  if (users.length !== entry.mints.length)
    throw new MintmarkError("store_corrupt", "A mint's entry ends early.");
  return entry.mints.map((mint, position): Found => {
    const reference = references.get(position) ?? null;
    const vault = {
      place: mint,
      made: mint,
      assetIndex: mint.assetIndex,
      mintingBlob: mint.mintingBlob,
    };
    const source = {
      type: "mint",
      journalSequence,
      time,
      mintId,
      position,
      mint,
      reference,
    } as const;
    return {
      sequence: firstSequence + position,
      userIndex: users[position]!,
      ...vault,
      source,
    };
  });
}

/** The transactions of a list of transfers: one for each vault that it makes. */
async function transfersIn(ledger: Ledger, list: TransferListRecord): Promise<Found[]> {
  const outputs = outputsOf(list);
  const places = outputs.map(({ transfer }) => placeOf(transfer.vaultId));
  // A hostile operator's record can spend an id that no batch has made. Then its own slot stands
  // for that vault.
  const known = places.map((place, i) =>
    hasSlot(ledger, place, null) ? place : (placeIn(list, outputs[i]!.position) ?? place),
  );
  const spent = await readVaults(ledger, known, null);
  return outputs.map((output, i): Found => {
    const { position, transfer } = output;
    const { assetIndex, mintingBlob } = spent[i]!.vault;
    const vault = {
      place: places[i]!,
      made: placeIn(list, position),
      assetIndex,
      mintingBlob,
    };
    const source = { type: "transfer", list, output } as const;
    return {
      sequence: list.firstSequence + position,
      userIndex: transfer.userIndex,
      ...vault,
      source,
    };
  });
}

async function depositIn(
  ledger: Ledger,
  { time, entry }: Journaled<EntryOf<"deposited">>,
): Promise<Found> {
  const { making, slot, sequence, userIndex, assetIndex } = entry;
  const place = { mode: "made", batchNumber: making, slot } as const;
  const { vault } = (await readVaults(ledger, [place], null))[0]!;
  const source = { type: "deposit", time, vault } as const;
  return {
    sequence,
    userIndex,
    place,
    made: place,
    assetIndex,
    mintingBlob: vault.mintingBlob,
    source,
  };
}

/** The deposit of a made vault to an application's user; undefined for none. */
export async function findDeposit(
  ledger: Ledger,
  applicationIndex: number,
  vaultId: VaultId,
): Promise<Found | undefined> {
  const reference = await ledger.store.get(keyOf.deposit(vaultId));
  if (reference === undefined) return undefined;
  const { sequence, time, entry } = await readEntry(ledger.store, sequenceIn(reference));
  if (entry.kind !== "deposited" || entry.applicationIndex !== applicationIndex) return undefined;
  return depositIn(ledger, { sequence, time, entry });
}

export async function findWithdrawal(
  ledger: Ledger,
  applicationIndex: number,
  withdrawalId: Uuid,
): Promise<Found | undefined> {
  const stored = await ledger.store.get(keyOf.withdrawal(withdrawalId));
  if (stored === undefined) return undefined;
  const record = decodeRecord(withdrawalRecord, stored, `Withdrawal ${withdrawalId}`);
  if (record.applicationIndex !== applicationIndex) return undefined;
  const place = placeOf(record.vaultId);
  const lost = ledger.l1.lost[place.mode].durable.get(place.batchNumber) ?? [];
  const held = lost
    .filter(({ upTo }) => record.journalSequence < upTo)
    .flatMap(({ withdrawn }) => withdrawn);
  // The vault's record is L1's now. The ledger keeps what lost vaults held.
  const gone = held.find(({ slot }) => slot === place.slot);
  const { assetIndex, mintingBlob } = gone ?? (await readVault(ledger, place));
  const { sequence, userIndex } = record;
  return {
    sequence,
    userIndex,
    place,
    made: null,
    assetIndex,
    mintingBlob,
    source: { type: "withdrawal", record },
  };
}

export async function findTransfer(
  ledger: Ledger,
  applicationIndex: number,
  transferId: Uuid,
  position: number,
) {
  const stored = await ledger.store.get(keyOf.transferList(transferId));
  if (stored === undefined) return undefined;
  const list = decodeTransferList(stored, transferId);
  return list.applicationIndex === applicationIndex
    ? (await transfersIn(ledger, list))[position]
    : undefined;
}

/**
 * The vault that a mint or a transfer made. Null if there is none, or not yet, or L1's history
 * lacks it.
 */
export function vaultOf(ledger: Ledger, { source, made }: Found): VaultPlace | null {
  if (source.type === "transfer") return source.output.holderIndex === null ? null : made;
  return source.type === "mint" && lostAt(ledger, source.mint, source.journalSequence) !== null
    ? null
    : made;
}

/**
 * Most transactions that one page examines. A withdrawal or a transfer counts for as many as its
 * two reads cost.
 */
export const SCAN_BOUND = 10_000;
export const WITHDRAWAL_WEIGHT = 20;
// Each vault of a list of transfers counts this: the whole list is read for any one of them
export const SLOT_WEIGHT = 2;

/** An index is sought, and its next requests are read: as much work as to examine so many. */
export const SEEK_WEIGHT = 5;
/** Transactions of a request that are read for one unit of work, also if the page wants none. */
export const READ_PER_UNIT = 4;
/**
 * A page tells of its work after every so many transactions, which take a core for a millisecond.
 */
const TOLD_AFTER = 250;

/** Callbacks about a page of a list. */
export interface ScanOptions {
  /**
   * Called with the number of transactions that the page has examined so far: after every few
   * hundred, and at its end. The page goes on when it resolves, so others can have a turn; it
   * rejects as this does.
   */
  readonly onExamined?: ((transactions: number) => void | Promise<void>) | undefined;
}

/** Transactions that a page has examined so far. */
export class ScanProgress {
  done = 0;
  #told = 0;
  readonly #onExamined: ScanOptions["onExamined"];

  constructor({ onExamined }: ScanOptions = {}) {
    this.#onExamined = onExamined;
  }

  /** Called between pieces of work that take less than a millisecond. */
  async pause(): Promise<void> {
    if (this.done - this.#told >= TOLD_AFTER) await this.tell();
  }

  async tell(): Promise<void> {
    this.#told = this.done;
    await this.#onExamined?.(this.done);
  }
}

/**
 * Collects matches for a page, by sequence, and the start of the next one; null at the end. An
 * index record stands for a whole request, of which the part may want some transactions.
 */
export async function collect(
  ledger: Ledger,
  scan: Scan,
  limit: number,
  wanted: (found: Found) => boolean,
  work: ScanProgress,
) {
  const { applicationIndex, parts, order, after } = scan;
  const ascending = order === "asc";
  const found: Found[] = [];
  let last = after ?? 0;
  let isAhead = false; // The next page would otherwise begin where this one did
  for (const part of ascending ? parts : parts.toReversed()) {
    const { users, reference, within } = part;
    const from = ascending && after !== null ? Math.max(within.from, after + 1) : within.from;
    const to = !ascending && after !== null ? Math.min(within.to, after) : within.to;
    if (from >= to) continue;
    if (isAhead && work.done >= SCAN_BOUND) return { found, next: last };
    work.done += SEEK_WEIGHT;
    const range = { from, to, ascending };
    for await (const request of requestsOf(ledger, applicationIndex, part, range, work)) {
      await work.pause();
      const requested = await transactionsAt(ledger, request);
      work.done +=
        requested[0]?.source.type === "transfer"
          ? requested.length * SLOT_WEIGHT
          : Math.floor(requested.length / READ_PER_UNIT);
      for (const one of ascending ? requested : requested.reverse()) {
        const { sequence, source } = one;
        if (sequence < from || sequence >= to || (users !== undefined && !isOf(users, one)))
          continue;
        if (reference !== undefined && (source.type !== "mint" || source.reference !== reference))
          continue;
        if (found.length === limit || (isAhead && work.done >= SCAN_BOUND))
          return { found, next: last };
        if (wanted(one)) found.push(one);
        last = sequence;
        isAhead = true;
        work.done += source.type === "mint" ? 1 : WITHDRAWAL_WEIGHT;
      }
    }
    // The next page begins behind this part.
    last = ascending ? to - 1 : from;
    isAhead = true;
  }
  return { found, next: null };
}

type Entries = Pick<StoreReader, "entries">;

/** An application's requests within a range of sequences, from an index. */
interface RequestRange {
  readonly from: number;
  readonly to: number; // Exclusive
  readonly ascending: boolean;
}

/** Journal sequences of the requests in an index. */
export async function* requestsIn(
  store: Entries,
  index: Buffer,
  { from, to, ascending }: RequestRange,
) {
  const gte = requestByKey(index, await requestHolding(store, index, from));
  for await (const [, reference] of store.entries({
    gte,
    lt: requestByKey(index, to),
    reverse: !ascending,
  }))
    yield sequenceIn(reference);
}

/** Requests that are first read of an index among several, and most that are read at once. */
const SHORT_RUN = 4;
const LONG_RUN = 256;

/** The next requests of one index, which were read at once. */
interface Run {
  readonly index: Buffer;
  readonly requests: readonly number[];
  readonly size: number; // Most that were read
  readonly end: Buffer; // The last one's key
  at: number;
}

/**
 * Merges several indexes into one order. Each request comes once. One index is read at a time,
 * because the users of one owner can have a thousand.
 */
async function* requestsInAny(
  store: Entries,
  applicationIndex: number,
  indexes: readonly Buffer[],
  { from, to, ascending }: RequestRange,
  work: ScanProgress,
): AsyncGenerator<number> {
  const start = await requestHolding(store, prefixOf.transaction(applicationIndex), from);
  const runAfter = async (index: Buffer, size: number, end?: Buffer): Promise<Run | null> => {
    const first =
      ascending && end !== undefined ? { gt: end } : { gte: requestByKey(index, start) };
    const lt = ascending || end === undefined ? requestByKey(index, to) : end;
    const requests: number[] = [];
    let newest: Buffer | undefined;
    for await (const [key, reference] of store.entries({
      ...first,
      lt,
      reverse: !ascending,
      limit: size,
    })) {
      requests.push(sequenceIn(reference));
      newest = key;
    }
    work.done += SEEK_WEIGHT;
    await work.pause();
    return newest === undefined ? null : { index, requests, size, end: newest, at: 0 };
  };
  const next = ({ requests, at }: Run) => requests[at]!;
  const runs = new Heap<Run>((a, b) => (ascending ? next(a) < next(b) : next(a) > next(b)));
  for (const index of indexes) {
    const run = await runAfter(index, SHORT_RUN);
    if (run !== null) runs.add(run);
  }
  let before: number | null = null;
  for (let run = runs.first; run !== undefined; run = runs.first) {
    const request = next(run);
    if (request !== before) yield request;
    before = request;
    run.at += 1;
    if (run.at < run.requests.length) runs.replaceFirst(run);
    else {
      const { index, requests, size, end } = run;
      const more =
        requests.length < size ? null : await runAfter(index, Math.min(LONG_RUN, 2 * size), end);
      runs.replaceFirst(more);
    }
  }
}

/** The requests in the blocks that have every mark. */
async function* requestsInBlocks(
  store: Entries,
  applicationIndex: number,
  marks: readonly Buffer[],
  { from, to, ascending }: RequestRange,
): AsyncGenerator<number> {
  const first = blockOf(await requestHolding(store, prefixOf.transaction(applicationIndex), from));
  for await (const block of blocksWith(store, marks, first, blockOf(to - 1), ascending)) {
    const end = Math.min(to, firstOfBlock(block + 1));
    const [gte, lt] = [firstOfBlock(block), end].map((sequence) =>
      keyOf.transaction(applicationIndex, sequence),
    );
    const range = { gte, lt, reverse: !ascending };
    for await (const [, reference] of store.entries(range)) yield sequenceIn(reference);
  }
}

/** Blocks from `first` to `last` that have every mark. Skips from mark to mark. */
async function* blocksWith(
  store: Entries,
  marks: readonly Buffer[],
  first: number,
  last: number,
  ascending: boolean,
) {
  let at = ascending ? first : last;
  while (at >= first && at <= last) {
    let agreed = 0;
    for (let i = 0; agreed < marks.length; i = (i + 1) % marks.length) {
      const mark = marks[i]!;
      const range = ascending
        ? { gte: requestByKey(mark, at), lte: requestByKey(mark, last) }
        : { gte: requestByKey(mark, first), lte: requestByKey(mark, at), reverse: true };
      const next = await firstNumber(store, range);
      if (next === null) return;
      agreed = next === at ? agreed + 1 : 1;
      at = next;
    }
    yield at;
    at += ascending ? 1 : -1;
  }
}

/** The number at the end of the first key in a range; null when it holds none. */
async function firstNumber(
  store: Entries,
  range: Parameters<Entries["entries"]>[0],
): Promise<number | null> {
  for await (const [key] of store.entries({ ...range, limit: 1 }))
    return Number(key.readBigUInt64BE(key.length - 8));
  return null;
}

/**
 * The first sequence of the newest request at or before a sequence, which it may reach; else the
 * sequence.
 */
async function requestHolding(store: Entries, index: Buffer, sequence: number): Promise<number> {
  if (sequence === 0) return 0;
  const range = { gte: index, lte: requestByKey(index, sequence) };
  return (await firstNumber(store, { ...range, reverse: true })) ?? sequence;
}
