import { MintmarkError } from "../errors.ts";
import { type Address, MAX_AMOUNT, MAX_BATCH_VAULTS } from "../model.ts";
import type { AssetId } from "../ports.ts";
import {
  MAX_PACKED_DIGITS,
  OWNER_BYTES,
  type VaultEntry,
  VOID_RUN,
  widthOfWords,
} from "./batch-data.ts";
import { MAX_BLOB_BYTES } from "./blob.ts";
import { MAX_UINT64, requireBigint, requireInteger } from "./bounds.ts";
import { hexToBytes, writeHex } from "./hex.ts";
import { compareAssets, MAX_BATCH_ASSETS } from "./manifest.ts";

/** `digits` of a blob that the encoder cannot pack. */
export const NOT_PACKABLE = 0xff;
const ZERO = 0x30;
const NINE = 0x39;

/** The amounts and minting blobs of slots. Those of a void slot are not read. */
export interface SlotValues {
  readonly count: number;
  /** The two 32-bit words of each amount. */
  readonly amountHigh: Uint32Array;
  readonly amountLow: Uint32Array;
  readonly blobs: Uint8Array;
  /** The end of each blob in `blobs`. A blob begins at the end of the one before. */
  readonly blobEnd: Uint32Array;
}

/**
 * The slots of a batch, with the properties that decide the encoder's forms: typed arrays, without
 * objects.
 */
export interface BatchColumns extends SlotValues {
  readonly assets: readonly AssetId[];
  /** Distinct owners in order of first appearance, 20 bytes each. */
  readonly owners: readonly Uint8Array[];
  /** Index into `assets`; 0xffff for a void slot. */
  readonly asset: Uint16Array;
  readonly owner: Uint32Array;
  /** Bytes of the amount, 0 for an amount of 1. */
  readonly amountWidth: Uint8Array;
  readonly blobBytes: Uint8Array;
  /**
   * Length of a blob of 1 to 32 characters 0x30 to 0x3f, else {@link NOT_PACKABLE}; 0 for an empty
   * blob.
   */
  readonly digits: Uint8Array;
  /** 1 when the packable blob is a canonical decimal. */
  readonly isDecimal: Uint8Array;
  /** 1 when the blob is the previous slot's decimal plus one, with as many digits. */
  readonly follows: Uint8Array;
}

/**
 * Reads and checks the slots of a batch.
 *
 * @throws MintmarkError `validation_failed`, `amount_out_of_range`, `blob_invalid` or
 *   `batch_too_large` when no encoding can hold the slots
 */
export function readColumns(slots: readonly (VaultEntry | null)[]): BatchColumns {
  requireInteger("number of slots", slots.length, 1, MAX_BATCH_VAULTS);
  const count = slots.length;
  const asset = new Uint16Array(count).fill(VOID_RUN);
  const owner = new Uint32Array(count);
  const amountHigh = new Uint32Array(count);
  const amountLow = new Uint32Array(count);
  const blobEnd = new Uint32Array(count);
  const assets: AssetId[] = [];
  const assetIndices = new Map<string, number>();
  const owners = new Map<Address, number>();
  let end = 0;
  for (const [slot, entry] of slots.entries()) {
    if (entry !== null) {
      const { chainId, assetType, amount, blob } = entry;
      if (amount < 1n || amount > MAX_AMOUNT) throw new MintmarkError("amount_out_of_range");
      const blobBytes = (blob.length - 2) / 2;
      if (blobBytes > MAX_BLOB_BYTES) throw new MintmarkError("blob_invalid");
      const index = indexIn(assetIndices, `${chainId} ${assetType}`);
      if (index === assets.length) {
        requireBigint("chainId", chainId, 0n, MAX_UINT64);
        if (index >= MAX_BATCH_ASSETS)
          throw new MintmarkError("batch_too_large", "a batch holds at most 255 assets");
        assets.push({ chainId, assetType });
      }
      asset[slot] = index;
      owner[slot] = indexIn(owners, entry.owner);
      amountHigh[slot] = Number(amount >> 32n);
      amountLow[slot] = Number(amount & 0xffff_ffffn);
      end += blobBytes;
    }
    blobEnd[slot] = end;
  }
  const blobs = new Uint8Array(end);
  let at = 0;
  for (const entry of slots)
    if (entry) at = writeHex(entry.blob, (entry.blob.length - 2) / 2, blobs, at);
  const ownerBytes = Array.from(owners.keys(), (address) => hexToBytes(address, OWNER_BYTES));
  const values = { count, amountHigh, amountLow, blobs, blobEnd };
  return batchColumns(values, { assets, asset }, { owners: ownerBytes, owner });
}

/** Adds the columns that follow from the slots' values. */
export function batchColumns(
  { count, amountHigh, amountLow, blobs, blobEnd }: SlotValues,
  { assets, asset }: Pick<BatchColumns, "assets" | "asset">,
  owners: Pick<BatchColumns, "owners" | "owner">,
): BatchColumns {
  const amountWidth = new Uint8Array(count);
  const blobBytes = new Uint8Array(count);
  const digits = new Uint8Array(count);
  const isDecimal = new Uint8Array(count);
  const follows = new Uint8Array(count);
  let start = 0;
  for (let slot = 0; slot < count; slot++) {
    const end = blobEnd[slot] as number;
    if (asset[slot] !== VOID_RUN) {
      const packable = packableIn(blobs, start, end);
      amountWidth[slot] = widthOfWords(amountHigh[slot] as number, amountLow[slot] as number);
      blobBytes[slot] = end - start;
      digits[slot] = packable;
      if (isDecimalIn(blobs, start, packable)) {
        isDecimal[slot] = 1;
        const isAlike = slot > 0 && isDecimal[slot - 1] === 1 && digits[slot - 1] === packable;
        if (isAlike && followsIn(blobs, start, packable)) follows[slot] = 1;
      }
    }
    start = end;
  }
  const named = { assets: ascendAssets(assets, asset), asset, ...owners };
  const forms = { amountWidth, blobBytes, digits, isDecimal, follows };
  return { count, amountHigh, amountLow, blobs, blobEnd, ...named, ...forms };
}

/**
 * Sorts assets in the order of a manifest.
 *
 * @param column - indexes into `assets`, or {@link VOID_RUN}; changed to the new positions
 */
export function ascendAssets<A extends AssetId>(assets: readonly A[], column: Uint16Array): A[] {
  const order = [...assets.keys()].sort((a, b) => compareAssets(assets[a] as A, assets[b] as A));
  const places = new Uint16Array(VOID_RUN + 1).fill(VOID_RUN);
  for (const [place, index] of order.entries()) places[index] = place;
  for (let slot = 0; slot < column.length; slot++)
    column[slot] = places[column[slot] as number] as number;
  return order.map((index) => assets[index] as A);
}

/** The place of a key in a dictionary, which grows by a new one. */
export function indexIn<K>(dictionary: Map<K, number>, key: K): number {
  const known = dictionary.get(key);
  if (known !== undefined) return known;
  dictionary.set(key, dictionary.size);
  return dictionary.size - 1;
}

function packableIn(bytes: Uint8Array, start: number, end: number): number {
  if (end - start > MAX_PACKED_DIGITS) return NOT_PACKABLE;
  for (let i = start; i < end; i++) if ((bytes[i] as number) >> 4 !== 3) return NOT_PACKABLE;
  return end - start;
}

function isDecimalIn(bytes: Uint8Array, start: number, digits: number): boolean {
  if (digits === 0 || digits === NOT_PACKABLE || (digits > 1 && bytes[start] === ZERO))
    return false;
  for (let i = start; i < start + digits; i++) if ((bytes[i] as number) > NINE) return false;
  return true;
}

/**
 * Whether a decimal follows the one before it with as many digits. Compares from the last digit,
 * with carry.
 */
function followsIn(bytes: Uint8Array, start: number, digits: number): boolean {
  let carry = 1;
  for (let i = start + digits - 1; i >= start; i--) {
    const sum = (bytes[i - digits] as number) + carry;
    carry = sum > NINE ? 1 : 0;
    if ((carry === 1 ? ZERO : sum) !== bytes[i]) return false;
  }
  return carry === 0;
}
