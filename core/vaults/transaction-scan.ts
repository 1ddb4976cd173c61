import { MintmarkError } from "../errors.ts";
import type { Ledger } from "../ledger/ledger.ts";
import type { Uuid } from "../model.ts";
import type { VaultPlace } from "../protocol/vault.ts";
import { type Journaled, readEntry, sequenceIn } from "../store/journal.ts";
import { decodeRecord } from "../store/layout.ts";
import type { MintEntry, PlacedMint } from "../store/mint-entry.ts";
import { type WithdrawalRecord, withdrawalRecord } from "../store/records.ts";
import {
  applicationWithdrawalKey,
  mintReferenceKey,
  transactionKey,
  userTransactionKey,
  withdrawalKey,
} from "../store/store-keys.ts";
import type { Part } from "./transaction-range.ts";
import { placeOf, readVault } from "./vaults.ts";

/** A transaction before its user's id is looked up. */
export interface Found {
  readonly sequence: number;
  readonly userIndex: number;
  readonly source:
    | {
        readonly type: "mint";
        /** Of its journal entry. */
        readonly journalSequence: number;
        readonly time: number;
        readonly mintId: Uuid;
        readonly position: number;
        readonly mint: PlacedMint;
        /** What the caller calls it. */
        readonly reference: string | null;
      }
    | {
        readonly type: "withdrawal";
        readonly record: WithdrawalRecord;
        readonly place: VaultPlace;
        readonly assetIndex: number;
        readonly blob: PlacedMint["blob"];
      };
}

/** Which transactions are looked at, and in what order. */
export interface Scan {
  readonly applicationIndex: number;
  /** One after the other, without overlap. */
  readonly parts: readonly Part[];
  readonly order: "asc" | "desc";
  /** Where the page before ended. */
  readonly after: number | null;
}

/** Transactions in the order of their sequence. Each index record stands for a whole request, of which only a part may be wanted. */
export async function* scanTransactions(ledger: Ledger, scan: Scan): AsyncGenerator<Found> {
  for (const part of scan.order === "asc" ? scan.parts : scan.parts.toReversed()) yield* scanPart(ledger, scan, part);
}

async function* scanPart(ledger: Ledger, scan: Scan, part: Part): AsyncGenerator<Found> {
  const { order, after } = scan;
  const { userIndex, reference, within } = part;
  const ascending = order === "asc";
  const from = ascending && after !== null ? Math.max(within.from, after + 1) : within.from;
  const to = !ascending && after !== null ? Math.min(within.to, after) : within.to;
  if (from >= to) return;
  const at = indexOf(scan.applicationIndex, part);
  const start = from === 0 ? at(0) : await requestHolding(ledger, at, from);
  const range = { gte: start, lt: at(to), reverse: !ascending };
  for await (const [, record] of ledger.store.entries(range)) {
    const found = await transactionsAt(ledger, sequenceIn(record));
    for (const one of ascending ? found : found.reverse()) {
      const isWithin = one.sequence >= from && one.sequence < to;
      const isOfUser = userIndex === undefined || one.userIndex === userIndex;
      if (isWithin && isOfUser && (reference === undefined || referenceOf(one) === reference)) yield one;
    }
  }
}

export function referenceOf({ source }: Found): string | null {
  return source.type === "mint" ? source.reference : null;
}

/** The index that has the fewest records besides the wanted ones, as the key of a sequence. */
function indexOf(applicationIndex: number, { userIndex, type, reference }: Part): (sequence: number) => Buffer {
  if (reference !== undefined) return (sequence) => mintReferenceKey(applicationIndex, reference, sequence);
  if (type === "withdrawal") return (sequence) => applicationWithdrawalKey(applicationIndex, sequence);
  if (userIndex !== undefined) return (sequence) => userTransactionKey(applicationIndex, userIndex, sequence);
  return (sequence) => transactionKey(applicationIndex, sequence);
}

/** The key of the newest request that starts at or before a sequence: it may go on after it. Without one the sequence's own. */
async function requestHolding(ledger: Ledger, at: (sequence: number) => Buffer, sequence: number): Promise<Buffer> {
  const range = { gte: at(0), lte: at(sequence), reverse: true, limit: 1 };
  for await (const [key] of ledger.store.entries(range)) return key;
  return at(sequence);
}

async function transactionsAt(ledger: Ledger, sequence: number): Promise<Found[]> {
  const { time, entry } = await readEntry(ledger.store, sequence);
  if (entry.kind === "mint") return mintTransactions({ sequence, time, entry });
  if (entry.kind !== "withdrawalRequested") throw new MintmarkError("store_corrupt", "An index record is damaged.");
  const found = await findWithdrawal(ledger, entry.applicationIndex, entry.withdrawalId);
  if (found === undefined) throw new MintmarkError("store_corrupt", `Withdrawal ${entry.withdrawalId} is missing.`);
  return [found];
}

/** The transactions of a mint's request, in its order. */
export function mintTransactions({ sequence: journalSequence, time, entry }: Journaled<MintEntry>): Found[] {
  const found: Found[] = [];
  for (const { userIndex, count } of entry.users) {
    for (let i = 0; i < count; i++) {
      const position = found.length;
      const mint = entry.mints[position];
      if (mint === undefined) throw new MintmarkError("store_corrupt", "A mint's entry ends early.");
      const reference = entry.references.get(position) ?? null;
      const source = { type: "mint" as const, journalSequence, time, mintId: entry.mintId, position, mint, reference };
      found.push({ sequence: entry.firstSequence + position, userIndex, source });
    }
  }
  return found;
}

/** An application's withdrawal; undefined when it has none of this id. */
export async function findWithdrawal(
  ledger: Ledger,
  applicationIndex: number,
  withdrawalId: Uuid,
): Promise<Found | undefined> {
  const stored = await ledger.store.get(withdrawalKey(withdrawalId));
  if (stored === undefined) return undefined;
  const record = decodeRecord(withdrawalRecord, stored, `Withdrawal ${withdrawalId}`);
  if (record.applicationIndex !== applicationIndex) return undefined;
  const place = placeOf(record.vaultId);
  const lost = ledger.lost[place.mode].get(place.batchNumber) ?? [];
  const held = lost.filter(({ upTo }) => record.journalSequence < upTo).flatMap(({ withdrawn }) => withdrawn);
  // What a vault holds that L1's history replaced, its own record tells no more.
  const gone = held.find(({ slot }) => slot === place.slot);
  const { assetIndex, blob } = gone ?? (await readVault(ledger, place));
  const { sequence, userIndex } = record;
  return { sequence, userIndex, source: { type: "withdrawal", record, place, assetIndex, blob } };
}
