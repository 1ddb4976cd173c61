import { MintmarkError } from "../errors.ts";
import type { Hash, Uuid } from "../model.ts";
import { ENTRY_KINDS, type Entry, type EntryKind, type EntryOf, MINT_KIND } from "./entries.ts";
import { openRecord, uuid } from "./layout.ts";
import { decodeMint, MintEntries, type MintJournalEntry, mintHeader } from "./mint-entry.ts";
import type { KeyRange, StoreReader } from "./ports.ts";
import { endOf, keyOf, PREFIX } from "./store-keys.ts";

// Entries of this kind begin with the list's id
const TRANSFERS_KIND = ENTRY_KINDS.byName.transfersRequested.number;
const REQUEST_KIND = ENTRY_KINDS.byName.requestKept.number;
const DEPOSIT_KIND = ENTRY_KINDS.byName.deposited.number;

export interface Journaled<E = Entry | MintJournalEntry> {
  readonly sequence: number; // 0 for genesis, then consecutive
  readonly time: number; // Milliseconds since 1970; at least the previous entry's
  readonly entry: E;
}

const KIND_AT = 7; // Position of the kind in a record, after version and time

/**
 * One entry of the journal, under its sequence number as u64:
 *
 * ```
 * record = version(1) = 0x01 ‖ time(6) ‖ kind(1) ‖ content ‖ crc32(4)
 * ```
 *
 * The kind determines the content's layout: core/store/entries.ts and core/store/mint-entry.ts.
 */
export function encodeEntry(time: number, entry: Entry): Buffer {
  return ENTRY_KINDS.encode(time, entry.kind, entry);
}

/** The inverse of {@link encodeEntry}. Throws `store_corrupt`. */
export function decodeEntry(sequence: number, record: Uint8Array): Journaled {
  const name = nameOf(sequence);
  const { time, number, from } = openRecord(record, name);
  if (number === MINT_KIND) {
    const entry = decodeMint(from);
    from.end();
    return { sequence, time, entry };
  }
  const { kind, content } = ENTRY_KINDS.read(number, from, name);
  from.end();
  return { sequence, time, entry: { kind, ...content } as Entry };
}

export function journalFrom(sequence: number): KeyRange {
  return { gte: keyOf.journal(sequence), lt: endOf(Buffer.from([PREFIX.journal])) };
}

/** The number of entries. */
export async function journalLength(store: StoreReader): Promise<number> {
  for await (const [key] of store.entries({ ...journalFrom(0), reverse: true, limit: 1 }))
    return 1 + Number(key.readBigUInt64BE(1));
  return 0;
}

/** The whole journal in order. Throws `store_corrupt` at a damaged entry or a gap. */
export async function* readJournal(store: Pick<StoreReader, "entries">): AsyncGenerator<Journaled> {
  let sequence = 0;
  for await (const [key, record] of store.entries(journalFrom(0))) {
    yield decodeEntry(
      sequence,
      required(key.equals(keyOf.journal(sequence)) ? record : undefined, sequence),
    );
    sequence++;
  }
}

/**
 * The entries from a sequence on, each with its idempotency key or null, without other contents.
 * Throws `store_corrupt`.
 */
export async function* readIdempotencyKeys(store: Pick<StoreReader, "entries">, first: number) {
  for await (const [at, record] of store.entries(journalFrom(first))) {
    const sequence = Number(at.readBigUInt64BE(1));
    const name = nameOf(sequence);
    const { time, number, from } = openRecord(record, name);
    let key: { readonly applicationIndex: number; readonly key: Hash } | null = null;
    if (number === MINT_KIND) {
      const { applicationIndex, idempotency } = mintHeader.read(from);
      if (idempotency !== null) key = { applicationIndex, key: idempotency.key };
    } else if (number === REQUEST_KIND) {
      const { entry } = decodeEntry(sequence, record);
      if (entry.kind === "requestKept") key = entry;
    }
    yield { sequence, time, key };
  }
}

/** The intact entries of some kinds, in order. Does not decode the others. */
export async function* readJournalKinds<K extends EntryKind>(
  store: Pick<StoreReader, "entries">,
  kinds: readonly K[],
): AsyncGenerator<Extract<Entry, EntryOf<K>>> {
  const numbers = new Set(kinds.map((kind) => ENTRY_KINDS.byName[kind].number));
  for await (const [key, record] of store.entries(journalFrom(0))) {
    if (!numbers.has(record[KIND_AT] ?? -1) || key.length !== 9) continue;
    try {
      yield decodeEntry(Number(key.readBigUInt64BE(1)), record).entry as Extract<Entry, EntryOf<K>>;
    } catch (error) {
      if (!(error instanceof MintmarkError) || error.code !== "store_corrupt") throw error;
    }
  }
}

/**
 * The mint at this sequence number. An index record names it, so any other entry throws
 * `store_corrupt`.
 */
export async function readMint(
  store: Pick<StoreReader, "get">,
  sequence: number,
): Promise<Journaled<MintJournalEntry>> {
  const found = await readEntry(store, sequence);
  if (found.entry.kind !== "mint")
    throw new MintmarkError("store_corrupt", `Journal entry ${sequence} is no mint.`);
  return { ...found, entry: found.entry };
}

export async function readEntry(
  store: Pick<StoreReader, "get">,
  sequence: number,
): Promise<Journaled> {
  return decodeEntry(sequence, required(await store.get(keyOf.journal(sequence)), sequence));
}

/** A user gets vaults by mints, by lists of transfers and by deposits. */
export type UserRequest =
  | { readonly sequence: number; readonly mints: MintEntries }
  | { readonly sequence: number; readonly transferId: Uuid }
  | { readonly sequence: number; readonly deposit: EntryOf<"deposited"> };

/**
 * The mints, transfers and deposits at these sequences, in that order, without other kinds. Throws
 * `store_corrupt` for a gap.
 */
export async function readUserRequests(
  store: Pick<StoreReader, "getMany">,
  sequences: readonly number[],
) {
  const records = await store.getMany(sequences.map(keyOf.journal));
  return records.flatMap((record, i): UserRequest[] => {
    const sequence = sequences[i]!;
    const stored = required(record, sequence);
    const { number, from } = openRecord(stored, nameOf(sequence));
    if (number === MINT_KIND) return [{ sequence, mints: new MintEntries(from) }];
    if (number === TRANSFERS_KIND) return [{ sequence, transferId: uuid.read(from) }];
    if (number !== DEPOSIT_KIND) return [];
    return [{ sequence, deposit: decodeEntry(sequence, stored).entry as EntryOf<"deposited"> }];
  });
}

/** The time of the entry at this sequence; decodes nothing else. Throws `store_corrupt`. */
export async function readTime(store: Pick<StoreReader, "get">, sequence: number): Promise<number> {
  return openRecord(required(await store.get(keyOf.journal(sequence)), sequence), nameOf(sequence))
    .time;
}

const nameOf = (sequence: number) => `Journal entry ${sequence}`;

function required(record: Buffer | undefined, sequence: number): Buffer {
  if (record === undefined)
    throw new MintmarkError("store_corrupt", `${nameOf(sequence)} is missing.`);
  return record;
}

export function sequenceIn(reference: Buffer): number {
  if (reference.length !== 8)
    throw new MintmarkError("store_corrupt", "An index record is damaged.");
  return Number(reference.readBigUInt64BE());
}
