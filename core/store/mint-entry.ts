import { type Hex, MODES, type Mode, type VaultId } from "../model.ts";
import { packVaultId } from "../protocol/vault.ts";
import { type ByteReader, record as to } from "./binary.ts";
import { MINT_KIND } from "./entries.ts";
import { hash, layout, listOf, nullable, text, uuid, type ValueOf, varint } from "./layout.ts";
import { columnOf, type MintColumns, zerosOf } from "./mint-columns.ts";

export interface PlacedMint {
  readonly assetIndex: number;
  readonly mode: Mode;
  readonly batchNumber: number;
  readonly slot: number;
  readonly amountBefore: bigint; // The vault's amount before this entry; 0 for a new vault
  readonly age: number; // The vault's age in milliseconds; 0 for a new vault
  readonly amount: bigint;
  readonly mintingBlob: Hex;
}

/** A mode's open batch before the request: its number and its next free slot. */
const openPlace = layout({ batchNumber: varint, slot: varint });

/** The request-wide part of a mint's entry. */
export const mintHeader = layout({
  applicationIndex: varint,
  keyIndex: varint,
  // The application's sequence number of the first transaction; the others are consecutive
  firstSequence: varint,
  mintId: uuid,
  openPlaces: layout({ validium: openPlace, "zk-rollup": openPlace }),
  /** SHA-256 of the idempotency key and of the request, when the caller sent a key. */
  idempotency: nullable(layout({ key: hash, digest: hash })),
  /** Users in request order, each with the number of its entries. */
  users: listOf(layout({ userIndex: varint, count: varint })),
});
export type MintHeader = ValueOf<typeof mintHeader>;

/** A whole accepted mint request: one journal entry, and the only record of its transactions. */
export interface MintJournalEntry extends MintHeader {
  readonly kind: "mint";
  readonly mints: readonly PlacedMint[];
  /** The caller's references of entries, by position in `mints`. */
  readonly references: ReadonlyMap<number, string>;
}

/**
 * The places of a request's entries, one typed array a property: {@link PlacedMint} without an
 * object each.
 */
export class PlacedColumns {
  readonly batchNumber: Uint32Array;
  readonly slot: Uint32Array;
  beforeHigh: Uint32Array; // The vault's amount before; both words 0 for a new vault
  beforeLow: Uint32Array;
  age: Float64Array;
  readonly #count: number;
  /** Whether the last three columns are of this request alone: most vaults are new. */
  #hasGrown = false;

  constructor(count: number) {
    this.#count = count;
    this.batchNumber = columnOf(Uint32Array, count);
    this.slot = columnOf(Uint32Array, count);
    this.beforeHigh = zerosOf(Uint32Array, count);
    this.beforeLow = zerosOf(Uint32Array, count);
    this.age = zerosOf(Float64Array, count);
  }

  /** Adds the vault of an entry. */
  added(entry: number, batchNumber: number, slot: number): void {
    this.batchNumber[entry] = batchNumber;
    this.slot[entry] = slot;
  }

  /** Adds what the vault of an entry was before. */
  grew(entry: number, high: number, low: number, age: number): void {
    if (!this.#hasGrown) {
      this.beforeHigh = columnOf(Uint32Array, this.#count);
      this.beforeLow = columnOf(Uint32Array, this.#count);
      this.age = columnOf(Float64Array, this.#count);
      this.#hasGrown = true;
    }
    this.beforeHigh[entry] = high;
    this.beforeLow[entry] = low;
    this.age[entry] = age;
  }
}

export function vaultIdOf(mint: PlacedMint): VaultId {
  return packVaultId({ mode: mint.mode, batchNumber: mint.batchNumber, slot: mint.slot });
}

const REFERENCES = listOf(layout({ entry: varint, text }));

const MODE_BIT = 1;
const NEXT_BATCH_BIT = 2;
const EXISTING_BIT = 4;
const AMOUNT_BIT = 8;

/**
 * A mint's entry of the journal: `encodeEntry` describes all but its content. New vaults of a mode
 * have consecutive slots, so only existing vaults are named:
 *
 * ```
 * mint       = applicationIndex keyIndex firstSequence mintId:16 open open idempotent:1 [ key:32 digest:32 ]
 *              userCount userCount*( userIndex count ) 1*entry [ referenceCount referenceCount*( entry text ) ]
 * open       = batchNumber slot                       ; validium, then zk-rollup
 * entry      = assetIndex flags:1 [ slot ] [ amountBefore age ] [ amount ] mintingBlobLength:1 mintingBlob
 * flags      = 1 mode · 2 the mode's next batch starts here · 4 an existing vault · 8 amount follows, else 1
 * ```
 *
 * Numbers without a size are varints. References, if any, are at the end.
 */
export function encodeMintEntry(
  time: number,
  header: MintHeader,
  columns: MintColumns,
  placed: PlacedColumns,
): Buffer {
  to.begin().u48(time);
  to.u8(MINT_KIND);
  encodeHeader(header);
  const { count, assetIndex, mode, amountHigh, amountLow, mintingBlobs, mintingBlobEnd } = columns;
  const { batchNumber, slot, beforeHigh, beforeLow, age } = placed;
  const batches = [
    header.openPlaces.validium.batchNumber,
    header.openPlaces["zk-rollup"].batchNumber,
  ];
  let start = 0;
  for (let entry = 0; entry < count; entry++) {
    const bit = mode[entry]!;
    const batch = batchNumber[entry]!;
    const before = beforeHigh[entry] !== 0 || beforeLow[entry] !== 0;
    const one = amountHigh[entry] === 0 && amountLow[entry] === 1;
    const isNext = batch !== batches[bit];
    batches[bit] = batch;
    to.varint(assetIndex[entry]!);
    to.u8(
      (bit === 0 ? 0 : MODE_BIT) |
        (isNext ? NEXT_BATCH_BIT : 0) |
        (before ? EXISTING_BIT : 0) |
        (one ? 0 : AMOUNT_BIT),
    );
    if (before) {
      to.varint(slot[entry]!);
      to.varintWords(beforeHigh[entry]!, beforeLow[entry]!);
      to.varint(age[entry]!);
    }
    if (!one) to.varintWords(amountHigh[entry]!, amountLow[entry]!);
    const end = mintingBlobEnd[entry]!;
    to.u8(end - start);
    to.bytes(mintingBlobs, start, end);
    start = end;
  }
  if (columns.references !== null) REFERENCES.write(to, columns.textsIn("references"));
  return to.end();
}

/** Writes `mintHeader` without looking up each field, because every mint pays for this. */
function encodeHeader(header: MintHeader): void {
  to.varint(header.applicationIndex);
  to.varint(header.keyIndex);
  to.varint(header.firstSequence);
  to.uuid(header.mintId);
  for (const mode of MODES) {
    to.varint(header.openPlaces[mode].batchNumber);
    to.varint(header.openPlaces[mode].slot);
  }
  to.u8(header.idempotency === null ? 0 : 1);
  if (header.idempotency !== null) {
    to.hex(header.idempotency.key);
    to.hex(header.idempotency.digest);
  }
  to.varint(header.users.length);
  for (const { userIndex, count } of header.users) {
    to.varint(userIndex);
    to.varint(count);
  }
}

/** The inverse of {@link encodeMintEntry}. */
export function decodeMint(from: ByteReader): MintJournalEntry {
  const entries = new MintEntries(from);
  const mints: PlacedMint[] = [];
  for (let i = 0; i < entries.count; i++) {
    entries.next();
    const { assetIndex, mode, batchNumber, slot, amountBefore, age, amount, mintingBlob } = entries;
    mints.push({ assetIndex, mode, batchNumber, slot, amountBefore, age, amount, mintingBlob });
  }
  const references = from.ended
    ? []
    : REFERENCES.read(from).map(({ entry, text }) => [entry, text] as const);
  return { kind: "mint", ...entries.header, mints, references: new Map(references) };
}

/** Reads the entries of a mint one by one, as {@link PlacedMint} without an object each. */
export class MintEntries implements PlacedMint {
  readonly header: MintHeader;
  readonly count: number;
  assetIndex = 0;
  mode: Mode = "validium";
  batchNumber = 0;
  slot = 0;
  amountBefore = 0n;
  age = 0;
  amount = 0n;
  readonly #from: ByteReader;
  /** The place of the next new vault of each mode. */
  readonly #next: Readonly<Record<Mode, { batchNumber: number; slot: number }>>;
  #mintingBlobAt = 0;
  #mintingBlobBytes = 0;

  constructor(from: ByteReader) {
    this.#from = from;
    this.header = mintHeader.read(from);
    this.count = this.header.users.reduce((sum, user) => sum + user.count, 0);
    const { validium, "zk-rollup": rollup } = this.header.openPlaces;
    this.#next = { validium: { ...validium }, "zk-rollup": { ...rollup } };
  }

  next(): void {
    const from = this.#from;
    this.assetIndex = from.varint();
    const flags = from.u8();
    this.mode = flags & MODE_BIT ? "zk-rollup" : "validium";
    const place = this.#next[this.mode];
    if (flags & NEXT_BATCH_BIT) {
      place.batchNumber++;
      place.slot = 0;
    }
    const existing = (flags & EXISTING_BIT) !== 0;
    this.batchNumber = place.batchNumber;
    this.slot = existing ? from.varint() : place.slot++;
    this.amountBefore = existing ? from.bigVarint() : 0n;
    this.age = existing ? from.varint() : 0;
    this.amount = flags & AMOUNT_BIT ? from.bigVarint() : 1n;
    this.#mintingBlobBytes = from.u8();
    this.#mintingBlobAt = from.skip(this.#mintingBlobBytes);
  }

  get mintingBlob(): Hex {
    return this.#from.hexAt(this.#mintingBlobAt, this.#mintingBlobBytes);
  }
}
