import { MintmarkError } from "../errors.ts";
import { type Address, type Hash, MAX_AMOUNT, MAX_BATCH_VAULTS } from "../model.ts";
import { amountWidth, MAX_DICTIONARY, MAX_PACKED_DIGITS, type VaultEntry, VOID_RUN } from "./batch-data.ts";
import { MAX_BLOB_BYTES } from "./blob.ts";
import { MAX_UINT64, requireBigint, requireInteger } from "./bounds.ts";

/** `digits` of a blob that cannot be packed. */
export const NOT_PACKABLE = 0xff;

const THREE = 0x33;
const ZERO = 0x30;
const NINE = 0x39;
const LETTER_A = 0x61;
const LETTER_F = 0x66;
/** Decimal digits that a double holds exactly. */
const EXACT_DIGITS = 15;
const EXACT_MODULUS = 10 ** EXACT_DIGITS;

/**
 * What the encoder must know of a batch's slots to choose forms, one typed array a property, so that the choice reads no string
 * and makes no object.
 */
export interface BatchColumns {
  readonly count: number;
  /** Asset dictionary in order of first appearance. */
  readonly assets: readonly { readonly chainId: bigint; readonly assetType: Hash }[];
  /** Distinct owners in order of first appearance. */
  readonly owners: readonly Address[];
  /** Index into `assets`; 0xffff for a void slot. */
  readonly asset: Uint16Array;
  /** Index into `owners`. */
  readonly owner: Uint32Array;
  /** Bytes of the amount, 0 for an amount of 1. */
  readonly amountWidth: Uint8Array;
  /** Bytes of the blob. */
  readonly blobBytes: Uint8Array;
  /** Length of a blob of 1 to 32 characters 0x30 to 0x3f, else {@link NOT_PACKABLE}; 0 when it is empty. */
  readonly digits: Uint8Array;
  /** 1 when such a blob is a canonical decimal. */
  readonly isDecimal: Uint8Array;
  /** 1 when the blob is the decimal that follows the previous slot's, with as many digits. */
  readonly follows: Uint8Array;
}

/**
 * Reads and checks the slots of a batch.
 *
 * @throws MintmarkError `validation_failed`, `amount_out_of_range`, `blob_invalid` or `batch_too_large` when no encoding could hold them
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
  const assets = new AssetDictionary();
  const owners = new Map<Address, number>();
  for (let slot = 0; slot < count; slot++) {
    const entry = slots[slot] ?? null;
    if (entry === null) continue;
    if (entry.amount < 1n || entry.amount > MAX_AMOUNT) throw new MintmarkError("amount_out_of_range");
    const blobBytes = (entry.blob.length - 2) / 2;
    if (blobBytes > MAX_BLOB_BYTES) throw new MintmarkError("blob_invalid");
    columns.asset[slot] = assets.indexOf(entry);
    columns.owner[slot] = indexIn(owners, entry.owner);
    columns.amountWidth[slot] = amountWidth(entry.amount);
    columns.blobBytes[slot] = blobBytes;
    columns.digits[slot] = packableDigits(entry.blob);
    if (!isCanonicalDecimal(entry.blob, columns.digits[slot] as number)) continue;
    columns.isDecimal[slot] = 1;
    const before = slots[slot - 1] ?? null;
    const isAlike = columns.isDecimal[slot - 1] === 1 && columns.digits[slot - 1] === columns.digits[slot];
    if (isAlike && before !== null && follows(before.blob, entry.blob)) columns.follows[slot] = 1;
  }
  return { count, assets: assets.entries, owners: [...owners.keys()], ...columns };
}

class AssetDictionary {
  readonly entries: { readonly chainId: bigint; readonly assetType: Hash }[] = [];
  readonly #indices = new Map<Hash, Map<bigint, number>>();
  #last = -1;

  indexOf({ chainId, assetType }: VaultEntry): number {
    const last = this.entries[this.#last];
    if (last !== undefined && last.assetType === assetType && last.chainId === chainId) return this.#last;
    let ofType = this.#indices.get(assetType);
    if (ofType === undefined) {
      ofType = new Map();
      this.#indices.set(assetType, ofType);
    }
    let index = ofType.get(chainId);
    if (index === undefined) {
      requireBigint("chainId", chainId, 0n, MAX_UINT64);
      index = this.entries.push({ chainId, assetType }) - 1;
      if (index >= MAX_DICTIONARY) throw new MintmarkError("batch_too_large", "a batch holds at most 65,535 assets");
      ofType.set(chainId, index);
    }
    this.#last = index;
    return index;
  }
}

function indexIn(dictionary: Map<Address, number>, key: Address): number {
  const known = dictionary.get(key);
  if (known !== undefined) return known;
  dictionary.set(key, dictionary.size);
  return dictionary.size - 1;
}

/** Hex of such characters reads `3d3d3d…`; no byte has to be decoded to see it. */
function packableDigits(blob: string): number {
  const digits = (blob.length - 2) / 2;
  if (digits > MAX_PACKED_DIGITS) return NOT_PACKABLE;
  for (let i = 2; i < blob.length; i += 2) {
    const low = blob.charCodeAt(i + 1);
    const isNibble = (low >= ZERO && low <= NINE) || (low >= LETTER_A && low <= LETTER_F);
    if (blob.charCodeAt(i) !== THREE || !isNibble) return NOT_PACKABLE;
  }
  return digits;
}

function isCanonicalDecimal(blob: string, digits: number): boolean {
  if (digits === 0 || digits === NOT_PACKABLE || (digits > 1 && blob.charCodeAt(3) === ZERO)) return false;
  for (let i = 3; i < blob.length; i += 2) if (blob.charCodeAt(i) > NINE) return false;
  return true;
}

/** Whether `blob` is the decimal after `before`; both are decimals of as many digits. */
function follows(before: string, blob: string): boolean {
  const low = lowDigits(blob);
  if (low !== (lowDigits(before) + 1) % EXACT_MODULUS) return false;
  const high = Math.max(2, blob.length - 2 * EXACT_DIGITS);
  if (low !== 0) return before.slice(2, high) === blob.slice(2, high);
  return toInteger(blob) === toInteger(before) + 1n;
}

/** The number that the last fifteen digits spell. */
function lowDigits(blob: string): number {
  let value = 0;
  for (let i = Math.max(3, blob.length + 1 - 2 * EXACT_DIGITS); i < blob.length; i += 2) {
    value = value * 10 + (blob.charCodeAt(i) - ZERO);
  }
  return value;
}

function toInteger(blob: string): bigint {
  return BigInt(Array.from({ length: (blob.length - 2) / 2 }, (_, i) => blob[3 + 2 * i]).join(""));
}
