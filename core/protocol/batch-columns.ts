import { MintmarkError } from "../errors.ts";
import { type Address, MAX_AMOUNT, MAX_BATCH_VAULTS } from "../model.ts";
import type { AssetId } from "../ports.ts";
import { amountWidth, MAX_PACKED_DIGITS, type VaultEntry, VOID_RUN } from "./batch-data.ts";
import { MAX_BLOB_BYTES } from "./blob.ts";
import { MAX_UINT64, requireBigint, requireInteger } from "./bounds.ts";
import { compareAssets, MAX_BATCH_ASSETS } from "./manifest.ts";

/** `digits` of a blob that the encoder cannot pack. */
export const NOT_PACKABLE = 0xff;

/** The hex of characters 0x30 to 0x3f: only these can be packed. A canonical decimal has no others. */
const PACKABLE = /^0x(?:3[0-9a-f])*$/;
const DECIMAL = /^0x(?:30|3[1-9](?:3[0-9])*)$/;

/** The properties of slots that decide the encoder's forms, as typed arrays: no strings to read, no objects. */
export interface BatchColumns {
  readonly count: number;
  readonly assets: readonly AssetId[];
  /** Distinct owners in order of first appearance. */
  readonly owners: readonly Address[];
  /** Index into `assets`; 0xffff for a void slot. */
  readonly asset: Uint16Array;
  readonly owner: Uint32Array;
  /** Bytes of the amount, 0 for an amount of 1. */
  readonly amountWidth: Uint8Array;
  readonly blobBytes: Uint8Array;
  /** Length of a blob of 1 to 32 characters 0x30 to 0x3f, else {@link NOT_PACKABLE}; 0 for an empty blob. */
  readonly digits: Uint8Array;
  /** 1 when the packable blob is a canonical decimal. */
  readonly isDecimal: Uint8Array;
  /** 1 when the blob is the previous slot's decimal plus one, with as many digits. */
  readonly follows: Uint8Array;
}

/**
 * Reads and checks the slots of a batch.
 *
 * @throws MintmarkError `validation_failed`, `amount_out_of_range`, `blob_invalid` or `batch_too_large` when no
 *   encoding can hold the slots
 */
export function readColumns(slots: readonly (VaultEntry | null)[]): BatchColumns {
  requireInteger("number of slots", slots.length, 1, MAX_BATCH_VAULTS);
  const count = slots.length;
  const columns = {
    asset: new Uint16Array(count).fill(VOID_RUN),
    owner: new Uint32Array(count),
    amountWidth: new Uint8Array(count),
    blobBytes: new Uint8Array(count),
    digits: new Uint8Array(count),
    isDecimal: new Uint8Array(count),
    follows: new Uint8Array(count),
  };
  const assets: AssetId[] = [];
  const assetIndices = new Map<string, number>();
  const owners = new Map<Address, number>();
  let asset = -1;
  let last = -1n;
  for (let slot = 0; slot < count; slot++) {
    const entry = slots[slot] ?? null;
    if (entry === null) continue;
    if (entry.amount < 1n || entry.amount > MAX_AMOUNT) throw new MintmarkError("amount_out_of_range");
    const blobBytes = (entry.blob.length - 2) / 2;
    if (blobBytes > MAX_BLOB_BYTES) throw new MintmarkError("blob_invalid");
    const { chainId, assetType } = entry;
    const isLast = assets[asset]?.assetType === assetType && assets[asset]?.chainId === chainId;
    if (!isLast) asset = indexIn(assetIndices, `${chainId} ${assetType}`);
    if (asset === assets.length) {
      requireBigint("chainId", chainId, 0n, MAX_UINT64);
      if (asset >= MAX_BATCH_ASSETS) throw new MintmarkError("batch_too_large", "a batch holds at most 255 assets");
      assets.push({ chainId, assetType });
    }
    columns.asset[slot] = asset;
    columns.owner[slot] = indexIn(owners, entry.owner);
    columns.amountWidth[slot] = amountWidth(entry.amount);
    columns.blobBytes[slot] = blobBytes;
    const isPackable = blobBytes <= MAX_PACKED_DIGITS && PACKABLE.test(entry.blob);
    columns.digits[slot] = isPackable ? blobBytes : NOT_PACKABLE;
    if (!isPackable || !DECIMAL.test(entry.blob)) continue;
    columns.isDecimal[slot] = 1;
    const value = BigInt(textOf(entry.blob));
    const isAlike = columns.isDecimal[slot - 1] === 1 && columns.digits[slot - 1] === columns.digits[slot];
    if (isAlike && value === last + 1n) columns.follows[slot] = 1;
    last = value;
  }
  return { count, assets: ascendAssets(assets, columns.asset), owners: [...owners.keys()], ...columns };
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
  for (let slot = 0; slot < column.length; slot++) column[slot] = places[column[slot] as number] as number;
  return order.map((index) => assets[index] as A);
}

/** The place of a key in a dictionary, which grows by a new one. */
export function indexIn<K>(dictionary: Map<K, number>, key: K): number {
  const known = dictionary.get(key);
  if (known !== undefined) return known;
  dictionary.set(key, dictionary.size);
  return dictionary.size - 1;
}

/** The text of a decimal from its hex `3d3d…`. */
function textOf(blob: string): string {
  let text = "";
  for (let i = 3; i < blob.length; i += 2) text += blob[i];
  return text;
}
