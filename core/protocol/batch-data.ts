import type { Hex } from "../model.ts";
import type { VaultContent } from "../ports.ts";
import { invariant } from "./bounds.ts";
import { bytesToHex, writeHex } from "./hex.ts";

/**
 * The batch data format, version 1 (docs/protocol.md 4): the vaults of a batch in slot order. L1
 * gets it as calldata; a committee stores it.
 *
 * ```
 * version:u8  assetCount:u16 (chainId:u64 assetType:u256)*  ownerCount:u16 (address:20)*  run+
 *
 * run:  0xffff length:u24                                                           void slots
 *       assetIndex:u16 form:u8 length:u24 [ownerIndex:u16] [blobLength:u8] [first]  record*length
 * form: amountForm(4) blobForm(2) ownerForm(2)
 * ```
 */
export const BATCH_DATA_VERSION = 0x01;
/** Marks a void run in place of an asset index. An asset index is below it. */
export const VOID_RUN = 0xffff;
/** Most owners in the dictionary, because its count has two bytes. */
export const MAX_DICTIONARY = 0xffff;
/**
 * Most characters of a blob that is packed into nibbles: characters 0x30 to 0x3f, digits among
 * them.
 */
export const MAX_PACKED_DIGITS = 32;

export const OwnerForm = { inline: 0, index8: 1, index16: 2, run: 3 } as const;
export const BlobForm = { empty: 0, raw: 1, packed: 2, consecutive: 3 } as const;
/** Amount forms above 0 are widths in bytes. */
export const MAX_AMOUNT_FORM = 8;

/** Bytes of a batch without assets, owners and runs. */
export const BATCH_DATA_BASE_BYTES = 5;
export const ASSET_ENTRY_BYTES = 40;
/** Bytes of an entry of the owner dictionary, and of an owner inside a record. */
export const OWNER_BYTES = 20;
/** Bytes of a run's asset index, form and length. */
export const RUN_HEADER_BYTES = 6;
export const VOID_RUN_BYTES = 5;

/**
 * One slot in batch data: a vault without its place, which follows from mode, batch number and
 * slot.
 */
export type VaultEntry = Omit<VaultContent, "vaultId">;

/** Bytes of an amount of two 32-bit words in its narrowest form; 0 for an amount of 1. */
export function widthOfWords(high: number, low: number): number {
  if (high > 0) return 4 + byteWidth(high);
  return low === 1 ? 0 : byteWidth(low);
}

function byteWidth(value: number): number {
  return (32 - Math.clz32(value) + 7) >>> 3;
}

/**
 * Most bytes that one more vault adds to the encoded data, whatever its neighbours. An asset that
 * is new to the batch adds {@link ASSET_ENTRY_BYTES}. The sum, on top of {@link
 * BATCH_DATA_BASE_BYTES}, decides when a batch is full.
 */
export function vaultBytesBound(amountWidth: number, blobBytes: number): number {
  return RUN_HEADER_BYTES + OWNER_BYTES + amountWidth + (blobBytes === 0 ? 0 : 2 + blobBytes);
}

/**
 * The reasons for refusing batch data. They are stable: committee members and the engine show them.
 */
export const BATCH_DATA_REASONS = {
  version_unknown: "The first byte is not a known version.",
  truncated: "The data ends too early.",
  no_run: "The batch has no run, so no slot.",
  run_empty: "A run has length 0.",
  too_many_slots: "The batch has more slots than allowed.",
  too_many_assets: "The batch has more than 255 assets.",
  asset_order: "The assets are not strictly ascending by chain and asset type.",
  asset_unused: "The manifest names an asset that no vault has.",
  asset_index: "An asset index is outside the asset dictionary.",
  owner_index: "An owner index is outside the owner dictionary.",
  amount_form: "An amount form is above 8.",
  amount_out_of_range: "An amount is 0 or above 2^63 - 1.",
  blob_empty: "A raw blob with its own length has length 0.",
  digits_out_of_range: "A number of packed digits is not 1 to 32.",
  digit_invalid: "A digit of a range's first number is above 9, or the padding nibble is not 0.",
  leading_zero: "The first number of a range begins with 0.",
  range_overflow: "A consecutive run goes past the last number of its digits.",
  asset_unregistered: "An asset is not registered.",
  blob_form:
    "The blob form does not fit the asset's standard: ERC-20 blobs are empty, all others are not.",
  erc721_amount: "An ERC-721 run has an amount form other than 0.",
} as const;
/** A key of {@link BATCH_DATA_REASONS}. */
export type BatchDataReason = keyof typeof BATCH_DATA_REASONS;

/**
 * Batch data that breaks the grammar, or that L1 and the committee refuse.
 *
 * @example
 * if (error instanceof BatchDataError) console.log(error.reason, error.offset); // "truncated", 812
 */
export class BatchDataError extends Error {
  override readonly name = "BatchDataError";
  readonly reason: BatchDataReason;
  /** Byte offset of the fault. */
  readonly offset: number;

  constructor(reason: BatchDataReason, offset: number) {
    super(`${BATCH_DATA_REASONS[reason]} (${reason} at byte ${offset})`);
    this.reason = reason;
    this.offset = offset;
  }
}

/** Reads the big-endian values of a batch's data in order. Throws at the end of the data. */
export class BatchInput {
  offset = 0;
  readonly #data: Uint8Array;
  readonly #truncated: (offset: number) => Error;

  /** @param truncated - the error for a value that begins at `offset` and ends past the data */
  constructor(
    data: Uint8Array,
    truncated = (offset: number): Error => new BatchDataError("truncated", offset),
  ) {
    this.#data = data;
    this.#truncated = truncated;
  }

  get atEnd(): boolean {
    return this.offset === this.#data.length;
  }

  /** The error for a value of `size` bytes just read. */
  refusal(reason: BatchDataReason, size = 0): BatchDataError {
    return new BatchDataError(reason, this.offset - size);
  }

  skip(size: number): void {
    this.require(size);
    this.offset += size;
  }

  require(size: number): void {
    if (this.offset + size > this.#data.length) throw this.#truncated(this.offset);
  }

  /** An integer of 1 to 4 bytes. */
  number(size: number): number {
    this.require(size);
    let value = 0;
    for (const end = this.offset + size; this.offset < end; this.offset++)
      value = value * 0x100 + (this.#data[this.offset] as number);
    return value;
  }

  /** An integer of 1 to 8 bytes. */
  uint(size: number): bigint {
    this.require(size);
    const high = size > 4 ? this.number(size - 4) : 0;
    const low = this.number(Math.min(size, 4));
    return high === 0 ? BigInt(low) : (BigInt(high) << 32n) | BigInt(low);
  }

  hex(size: number): Hex {
    this.require(size);
    this.offset += size;
    return bytesToHex(this.#data.subarray(this.offset - size, this.offset));
  }

  /** The nibble at `index` from here, most significant first. */
  peekNibble(index: number): number {
    const byte = this.#data[this.offset + (index >> 1)] ?? 0;
    return index % 2 === 0 ? byte >> 4 : byte & 0x0f;
  }
}

/** Appends the big-endian values of a batch's data. */
export class BatchOutput {
  readonly #bytes: Uint8Array;
  #offset = 0;

  /** @param most - upper bound of the bytes */
  constructor(most: number) {
    this.#bytes = new Uint8Array(most);
  }

  /** What was appended, in memory of its own. */
  get bytes(): Uint8Array {
    invariant(this.#offset <= this.#bytes.length, "data that is longer than its bound");
    return this.#offset === this.#bytes.length ? this.#bytes : this.#bytes.slice(0, this.#offset);
  }

  /** An unsigned integer below 2^32 in `size` bytes, 1 to 8. */
  uint(value: number, size: number): void {
    let rest = value;
    for (let at = this.#offset + size - 1; at >= this.#offset; at--) {
      this.#bytes[at] = rest & 0xff;
      rest >>>= 8;
    }
    this.#offset += size;
  }

  u64(value: bigint): void {
    this.words(Number(value >> 32n), Number(value & 0xffff_ffffn), 8);
  }

  hex(hex: string, size: number): void {
    this.#offset = writeHex(hex, size, this.#bytes, this.#offset);
  }

  /** An integer of two 32-bit words in `size` bytes, 1 to 8. */
  words(high: number, low: number, size: number): void {
    if (size > 4) this.uint(high, size - 4);
    this.uint(low, Math.min(size, 4));
  }

  slice(from: Uint8Array, start: number, end: number): void {
    for (let i = start; i < end; i++) this.#bytes[this.#offset++] = from[i] as number;
  }

  /** Packs characters 0x30 to 0x3f, one nibble a character, right-aligned. */
  packedSlice(from: Uint8Array, start: number, end: number): void {
    let at = start;
    if ((end - start) % 2 === 1) this.#bytes[this.#offset++] = (from[at++] as number) & 0x0f;
    for (; at < end; at += 2) {
      this.#bytes[this.#offset++] =
        (((from[at] as number) & 0x0f) << 4) | ((from[at + 1] as number) & 0x0f);
    }
  }
}
