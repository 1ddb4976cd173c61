import { createHash } from "node:crypto";
import { type Address, type Hex, MODES, type Uuid } from "../model.ts";
import type { AssetRecord } from "./records.ts";
import { shortDecimalIn } from "./token-id.ts";
import { hexOf } from "./vault-columns.ts";

const SMALL_BYTES = 1_024; // Longer columns have buffers of their own
const SLAB_BYTES = 1 << 15;
let slab = new ArrayBuffer(SLAB_BYTES);
let used = 0;

interface ColumnType<T> {
  readonly BYTES_PER_ELEMENT: number;
  new (buffer: ArrayBuffer, start?: number, count?: number): T;
}

/**
 * A column of one request, zeroed. A small typed array of its own takes three objects, most of what
 * a single mint would keep until it is durable. So small columns are views of a common buffer,
 * which lives as long as the last of them.
 */
export function columnOf<T>(type: ColumnType<T>, count: number): T {
  const bytes = count * type.BYTES_PER_ELEMENT;
  if (bytes > SMALL_BYTES) return new type(new ArrayBuffer(bytes));
  if (used + bytes > SLAB_BYTES) {
    slab = new ArrayBuffer(SLAB_BYTES);
    used = 0;
  }
  const at = used;
  used += (bytes + 7) & ~7;
  return new type(slab, at, count);
}

const zeros = new Map<ColumnType<unknown>, { readonly length: number }>();

/** Zeros for at least so many entries, shared: a column that nobody has written to. */
export function zerosOf<T extends { readonly length: number }>(
  type: ColumnType<T>,
  count: number,
): T {
  const known = zeros.get(type);
  if (known !== undefined && known.length >= count) return known as T;
  const made = new type(new ArrayBuffer(Math.max(1_024, 2 * count) * type.BYTES_PER_ELEMENT));
  zeros.set(type, made);
  return made;
}

const NONE: readonly never[] = [];

/**
 * An empty list for a request to fill. Where lists of one literal outlive a scavenge, as they do in
 * large requests, V8 makes all later ones of that literal old from the start, with what names them:
 * a small request would then stay in memory until the next full collection. A copy has no literal.
 */
export function youngList<T>(): T[] {
  return NONE.slice();
}

const USUAL_MINTING_BLOB_BYTES = 24; // Bytes of minting blobs reserved for an entry
export const NO_ASSET = 0xffff_ffff; // The asset of an entry that names none
export const BY_TOKEN_ID = 1; // The entry names its token by `tokenId`
export const BY_DECIMAL = 2; // The entry gives its amount by `amountDecimal`
export const BY_DEFAULT = 4; // The entry leaves its mode to the default
export const FAULTY = 8; // The entry has a fault, so no further check can look at it

/**
 * The entries of a mint request, of all users, in order. An object for each would dominate the cost
 * of a mint.
 */
export class MintColumns {
  readonly count: number;
  /** Users by id, or by the address of their owner; null for one that names neither. */
  readonly recipients = youngList<Uuid | Address | null>();
  readonly userCounts = youngList<number>();
  readonly assetIndex: Uint32Array;
  mode: Uint8Array; // Position in `MODES`
  amountHigh: Uint32Array;
  readonly amountLow: Uint32Array;
  /**
   * The token's id, if the minting blob is its decimal of at most 15 digits in this project's own
   * scheme; else -1.
   */
  readonly shortId: Float64Array;
  // The end of each minting blob in `mintingBlobs`. One begins at the end of the one before.
  readonly mintingBlobEnd: Uint32Array;
  mintingBlobs: Uint8Array;
  /**
   * Whether `mode` and `amountHigh` are of this request alone: nearly all amounts are small, most
   * modes are the first.
   */
  #hasModes = false;
  #hasHighs = false;
  /**
   * {@link BY_TOKEN_ID}, {@link BY_DECIMAL}, {@link BY_DEFAULT} and {@link FAULTY} of each entry;
   * null while all are 0.
   */
  #marks: Uint8Array | null = null;
  #quantities: Uint32Array | null = null; // Tokens of each entry; null while every entry has one
  references: (string | null)[] | null = null; // One for each entry; null while none has one
  metadata: (string | null)[] | null = null; // JSON for each entry; null while none has any
  minted: number; // Tokens of all entries

  constructor(count: number) {
    this.count = count;
    this.minted = count;
    this.assetIndex = columnOf(Uint32Array, count);
    this.mode = zerosOf(Uint8Array, count);
    this.amountHigh = zerosOf(Uint32Array, count);
    this.amountLow = columnOf(Uint32Array, count);
    this.shortId = columnOf(Float64Array, count);
    this.mintingBlobEnd = columnOf(Uint32Array, count);
    this.mintingBlobs = columnOf(Uint8Array, count * USUAL_MINTING_BLOB_BYTES);
  }

  setMode(entry: number, mode: number): void {
    if (mode === 0) return;
    if (!this.#hasModes) this.mode = columnOf(Uint8Array, this.count);
    this.#hasModes = true;
    this.mode[entry] = mode;
  }

  setAmount(entry: number, high: number, low: number): void {
    this.amountLow[entry] = low;
    if (high === 0) return;
    if (!this.#hasHighs) this.amountHigh = columnOf(Uint32Array, this.count);
    this.#hasHighs = true;
    this.amountHigh[entry] = high;
  }

  /** Records that an entry gives its token, its amount or its mode in another way than usual. */
  mark(
    entry: number,
    mark: typeof BY_TOKEN_ID | typeof BY_DECIMAL | typeof BY_DEFAULT | typeof FAULTY,
  ): void {
    this.#marks ??= new Uint8Array(this.count);
    this.#marks[entry] = this.#marks[entry]! | mark;
  }

  isMarked(entry: number, mark: number): boolean {
    return this.#marks !== null && (this.#marks[entry]! & mark) !== 0;
  }

  /** Makes room for an entry's minting blob behind that of the entry before. Returns its start. */
  takeMintingBlob(entry: number, bytes: number): number {
    const start = this.mintingBlobStart(entry);
    const end = start + bytes;
    if (end > this.mintingBlobs.length) {
      const larger = new Uint8Array(Math.max(end, 2 * this.mintingBlobs.length));
      larger.set(this.mintingBlobs);
      this.mintingBlobs = larger;
    }
    this.mintingBlobEnd[entry] = end;
    return start;
  }

  putMintingBlob(entry: number, mintingBlob: Uint8Array): void {
    const start = this.takeMintingBlob(entry, mintingBlob.length);
    this.mintingBlobs.set(mintingBlob, start);
  }

  /**
   * Notes the id that an entry's minting blob spells if it is short, which most are. Returns
   * whether it is.
   */
  noteShortId(
    entry: number,
    asset: Pick<AssetRecord, "standard" | "mintingBlobScheme"> | null,
  ): boolean {
    const isPlain =
      asset !== null && asset.mintingBlobScheme === "mintmark" && asset.standard !== "erc20";
    const end = this.mintingBlobEnd[entry]!;
    const short = isPlain
      ? shortDecimalIn(this.mintingBlobs, this.mintingBlobStart(entry), end)
      : -1;
    this.shortId[entry] = short;
    return short >= 0;
  }

  /** Records that the engine gives an entry `quantity` ids. */
  setQuantity(entry: number, quantity: number): void {
    this.#quantities ??= new Uint32Array(this.count).fill(1);
    this.#quantities[entry] = quantity;
    this.minted += quantity - 1;
  }

  setText(column: "references" | "metadata", entry: number, text: string): void {
    this[column] ??= Array<string | null>(this.count).fill(null);
    this[column][entry] = text;
  }

  /** The entries with a text in this column. */
  textsIn(column: "references" | "metadata"): { readonly entry: number; readonly text: string }[] {
    return this[column]?.flatMap((text, entry) => (text === null ? [] : [{ entry, text }])) ?? [];
  }

  quantityAt(entry: number): number {
    return this.#quantities === null ? 1 : this.#quantities[entry]!;
  }

  /** A digest of the request, to compare requests with the same idempotency key. */
  digest(): Hex {
    const digest = createHash("sha256");
    digest.update(`${this.recipients.join()} ${this.userCounts.join()}`);
    for (const column of [
      this.assetIndex,
      this.#modesGiven(),
      this.amountHigh,
      this.amountLow,
      this.mintingBlobEnd,
    ])
      digest.update(column.subarray(0, this.count));
    digest.update(this.mintingBlobs.subarray(0, this.mintingBlobStart(this.count)));
    if (this.#quantities !== null) digest.update(this.#quantities);
    if (this.references !== null) digest.update(JSON.stringify(this.references));
    if (this.metadata !== null) digest.update(`metadata ${JSON.stringify(this.metadata)}`);
    return `0x${digest.digest("hex")}`;
  }

  /** The modes as given in the request: the default may change before a repetition. */
  #modesGiven(): Uint8Array {
    if (this.#marks === null) return this.mode;
    return this.mode
      .subarray(0, this.count)
      .map((mode, entry) => (this.isMarked(entry, BY_DEFAULT) ? MODES.length : mode));
  }

  mintingBlobAt(entry: number): Hex {
    return hexOf(this.mintingBlobs, this.mintingBlobStart(entry), this.mintingBlobEnd[entry]!);
  }

  mintingBlobBytes(entry: number): Uint8Array {
    return this.mintingBlobs.subarray(this.mintingBlobStart(entry), this.mintingBlobEnd[entry]);
  }

  /** The field that names an entry's token, for an error. */
  tokenField(entry: number): string {
    if (this.mintingBlobStart(entry) === this.mintingBlobEnd[entry]) return "/quantity";
    return this.isMarked(entry, BY_TOKEN_ID) ? "/tokenId" : "/mintingBlob";
  }

  amountField(entry: number): string {
    return this.isMarked(entry, BY_DECIMAL) ? "/amountDecimal" : "/amount";
  }

  mintingBlobStart(entry: number): number {
    return entry === 0 ? 0 : this.mintingBlobEnd[entry - 1]!;
  }
}
