import type { Hex, Mode } from "../model.ts";
import type { ByteReader } from "./binary.ts";
import * as bits from "./mint-entry.ts";
import { type MintEntry, type MintHeader, type OpenPlace, type PlacedMint, REFERENCES } from "./mint-entry.ts";

/** The inverse of `encodeMint`. */
export function decodeMint(from: ByteReader): MintEntry {
  const entries = new MintEntries(from);
  const mints: PlacedMint[] = [];
  for (let i = 0; i < entries.count; i++) {
    entries.next();
    const { assetIndex, mode, batchNumber, inBlobs, slot, amountBefore, age, amount, blob } = entries;
    mints.push({ assetIndex, mode, batchNumber, inBlobs, slot, amountBefore, age, amount, blob });
  }
  const references = new Map(from.ended ? [] : REFERENCES.read(from));
  return { kind: "mint", ...entries.header, mints, references };
}

export function decodeMintHeader(from: ByteReader): MintHeader {
  const applicationIndex = from.varint();
  const keyIndex = from.varint();
  const firstSequence = from.varint();
  const mintId = from.uuid();
  const openPlaces = { validium: decodeOpen(from), "zk-rollup": decodeOpen(from) };
  const idempotency = from.u8() === 1 ? { key: from.hex(32), digest: from.hex(32) } : null;
  const users = Array.from({ length: from.varint() }, () => ({ userIndex: from.varint(), count: from.varint() }));
  return { applicationIndex, keyIndex, firstSequence, mintId, idempotency, openPlaces, users };
}

function decodeOpen(from: ByteReader): OpenPlace {
  return { batchNumber: from.varint(), slot: from.varint() };
}

/** Reads the entries of a mint one by one, as {@link PlacedMint} without an object each. */
export class MintEntries implements PlacedMint {
  readonly header: MintHeader;
  readonly count: number;
  assetIndex = 0;
  mode: Mode = "validium";
  batchNumber = 0;
  inBlobs = false;
  slot = 0;
  amountBefore = 0n;
  age = 0;
  amount = 0n;
  readonly #from: ByteReader;
  /** The place of the next new vault of each mode. */
  readonly #next: Readonly<Record<Mode, { batchNumber: number; slot: number }>>;
  #blobAt = 0;
  #blobBytes = 0;

  constructor(from: ByteReader) {
    this.#from = from;
    this.header = decodeMintHeader(from);
    this.count = this.header.users.reduce((sum, user) => sum + user.count, 0);
    const { validium, "zk-rollup": rollup } = this.header.openPlaces;
    this.#next = { validium: { ...validium }, "zk-rollup": { ...rollup } };
  }

  next(): void {
    const from = this.#from;
    this.assetIndex = from.varint();
    const flags = from.u8();
    this.mode = flags & bits.MODE_BIT ? "zk-rollup" : "validium";
    const place = this.#next[this.mode];
    if (flags & bits.NEXT_BATCH_BIT) {
      place.batchNumber += flags & bits.TWO_ON_BIT ? 2 : 1;
      place.slot = 0;
    }
    const existing = (flags & bits.EXISTING_BIT) !== 0;
    const isBeside = (flags & bits.BESIDE_BIT) !== 0;
    this.batchNumber = place.batchNumber + (isBeside ? 1 : 0);
    this.inBlobs = (flags & bits.BLOBS_BIT) !== 0;
    this.slot = existing || isBeside ? from.varint() : place.slot++;
    this.amountBefore = existing ? from.bigVarint() : 0n;
    this.age = existing ? from.varint() : 0;
    this.amount = flags & bits.AMOUNT_BIT ? from.bigVarint() : 1n;
    this.#blobBytes = from.u8();
    this.#blobAt = from.skip(this.#blobBytes);
  }

  get blob(): Hex {
    return this.#from.hexAt(this.#blobAt, this.#blobBytes);
  }
}
