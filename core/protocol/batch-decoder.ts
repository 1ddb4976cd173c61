import {
  type Address,
  type Hash,
  type Hex,
  MAX_AMOUNT,
  MAX_BATCH_VAULTS,
  type Mode,
  type Standard,
} from "../model.ts";
import type { AssetId, VaultContent } from "../ports.ts";
import type { BatchInput, VaultEntry } from "./batch-data.ts";
import * as format from "./batch-data.ts";
import { requireInteger } from "./bounds.ts";
import { compareAssets, MAX_BATCH_ASSETS } from "./manifest.ts";
import { packVaultId } from "./vault.ts";

/** Further limits of the decoder, besides the grammar. */
export interface DecodeOptions {
  /** Most slots; 2^20 by default. */
  readonly maxSlots?: number;
  /**
   * Returns the standard of a registered asset; null for any other. With it, the decoder also
   * checks the rules of L1 and the committee for assets. Without it, only the grammar.
   */
  readonly standardOf?: (chainId: bigint, assetType: Hash) => Standard | null;
}

const ASSETS_AT = 3;

/** A decoded batch. */
export interface DecodedBatch {
  /** In slot order; null for a void slot. */
  readonly slots: (VaultEntry | null)[];
  /** The batch's manifest: exactly the assets of its vaults, ascending. */
  readonly assets: readonly AssetId[];
}

/**
 * Decodes the slots of batch data, in order; null for a void one. Applies all rules of
 * docs/protocol.md 4.
 *
 * @throws BatchDataError with the reason and the offset
 *
 * @example
 * const vaults = placeVaults(decodeBatchData(data), "zk-rollup", 0);
 */
export function decodeBatchData(
  data: Uint8Array,
  options: DecodeOptions = {},
): (VaultEntry | null)[] {
  return decodeBatch(data, options).slots;
}

/**
 * {@link decodeBatchData}, with the batch's manifest.
 *
 * @example
 * const { slots, assets } = decodeBatch(data);
 * const vaults = placeVaults(slots, "zk-rollup", 12);
 */
export function decodeBatch(data: Uint8Array, options: DecodeOptions = {}): DecodedBatch {
  const input = new format.BatchInput(data);
  if (input.number(1) !== format.BATCH_DATA_VERSION)
    throw new format.BatchDataError("version_unknown", 0);
  const { standardOf } = options;
  const assets = readAssets(input, standardOf);
  const standards = assets.map(
    ({ chainId, assetType }) => standardOf?.(chainId, assetType) ?? null,
  );
  const owners = readOwners(input);
  const slots: (VaultEntry | null)[] = [];
  const maxSlots = options.maxSlots ?? MAX_BATCH_VAULTS;
  if (input.atEnd) throw input.refusal("no_run");
  const used = new Set<number>();
  while (!input.atEnd) {
    const run = readRun(input, { assets, standards, owners }, slots.length, maxSlots);
    const { asset, length } = run;
    if (asset !== null) used.add(run.assetIndex);
    for (let i = 0; i < length; i++)
      slots.push(asset === null ? null : readRecord(input, run, asset, owners));
  }
  if (used.size !== assets.length) throw new format.BatchDataError("asset_unused", ASSETS_AT);
  return { slots, assets };
}

/**
 * Single slots of batch data, without those that are void. It skips what lies between them, so it
 * takes microseconds where {@link decodeBatch} takes milliseconds. It checks no rule of the vaults
 * that it skips: for data that was decoded before.
 *
 * @param slots - ascending
 * @param leftOut - places in the manifest of the assets whose vaults are not returned
 */
export function decodeSlots(
  data: Uint8Array,
  slots: readonly number[],
  leftOut: readonly number[] = [],
): Map<number, VaultEntry> {
  const input = new format.BatchInput(data);
  if (input.number(1) !== format.BATCH_DATA_VERSION)
    throw new format.BatchDataError("version_unknown", 0);
  const assets = readAssets(input);
  const owners = readOwners(input);
  const found = new Map<number, VaultEntry>();
  const wanted = slots.values();
  let { value: slot } = wanted.next();
  for (let first = 0; slot !== undefined && !input.atEnd; ) {
    const run = readRun(input, { assets, standards: [], owners }, first, MAX_BATCH_VAULTS);
    let next = first;
    first += run.length;
    for (; slot !== undefined && slot < first; { value: slot } = wanted.next()) {
      if (run.asset === null) continue;
      skipRecords(run, slot - next);
      next = slot + 1;
      const entry = readRecord(input, run, run.asset, owners);
      if (!leftOut.includes(run.assetIndex)) found.set(slot, entry);
    }
    if (run.asset !== null) skipRecords(run, first - next);
  }
  return found;
}

/**
 * Adds the vault ids that follow from mode and batch number.
 *
 * @example
 * const vaults = placeVaults(decodeBatch(data).slots, "zk-rollup", 12);
 * const tree = new BatchTree(vaultLeaves(vaults));
 */
export function placeVaults(
  entries: readonly (VaultEntry | null)[],
  mode: Mode,
  batchNumber: number,
): (VaultContent | null)[] {
  requireInteger("number of slots", entries.length, 1, MAX_BATCH_VAULTS);
  const first = packVaultId({ mode, batchNumber, slot: 0 });
  return entries.map((entry, slot) =>
    entry === null ? null : { vaultId: first + BigInt(slot), ...entry },
  );
}

/** The manifest of a batch's data, and with `standardOf` only of registered assets. */
export function readAssets(input: BatchInput, standardOf?: DecodeOptions["standardOf"]): AssetId[] {
  const count = input.number(2);
  if (count > MAX_BATCH_ASSETS) throw input.refusal("too_many_assets", 2);
  input.require(count * format.ASSET_ENTRY_BYTES);
  const assets: AssetId[] = [];
  for (let i = 0; i < count; i++) {
    const offset = input.offset;
    const asset = { chainId: input.uint(8), assetType: input.hex(32) };
    const last = assets[i - 1];
    if (last !== undefined && compareAssets(last, asset) >= 0)
      throw new format.BatchDataError("asset_order", offset);
    if (standardOf !== undefined && !standardOf(asset.chainId, asset.assetType))
      throw new format.BatchDataError("asset_unregistered", offset);
    assets.push(asset);
  }
  return assets;
}

function readOwners(input: BatchInput): Address[] {
  const count = input.number(2);
  input.require(count * format.OWNER_BYTES);
  return Array.from({ length: count }, () => input.hex(format.OWNER_BYTES));
}

/** What the runs of a batch refer to by index. */
interface Dictionaries {
  readonly assets: readonly AssetId[];
  /** Of the assets; none where their rules are not checked. */
  readonly standards: readonly (Standard | null)[];
  readonly owners: readonly Address[];
}

/** The head of a run: what its records have in common. */
interface Run {
  readonly assetIndex: number;
  /** null for a run of void slots, which has no records. */
  readonly asset: AssetId | null;
  readonly length: number;
  readonly ownerForm: number;
  /** The owner of the whole run; null when each record has its own. */
  readonly owner: Address | null;
  /** Bytes of a record's amount; 0 for amount 1. */
  readonly amountForm: number;
  readonly blobs: RunBlobs;
}

function readRun(
  input: BatchInput,
  { assets, standards, owners }: Dictionaries,
  slotsBefore: number,
  maxSlots: number,
): Run {
  const assetIndex = input.number(2);
  if (assetIndex === format.VOID_RUN) {
    const length = readLength(input, slotsBefore, maxSlots);
    return {
      assetIndex,
      asset: null,
      length,
      ownerForm: 0,
      owner: null,
      amountForm: 0,
      blobs: NO_BLOBS,
    };
  }
  const asset = assets[assetIndex];
  if (asset === undefined) throw input.refusal("asset_index", 2);
  const form = input.number(1);
  const amountForm = form >> 4;
  const blobForm = (form >> 2) & 3;
  const ownerForm = form & 3;
  requireForms(input, standards[assetIndex] ?? null, amountForm, blobForm);
  const length = readLength(input, slotsBefore, maxSlots);
  const owner = ownerForm === format.OwnerForm.run ? readIndexedOwner(input, owners, 2) : null;
  return {
    assetIndex,
    asset,
    length,
    ownerForm,
    owner,
    amountForm,
    blobs: readBlobs(input, blobForm, length),
  };
}

function readRecord(
  input: BatchInput,
  { ownerForm, owner: runOwner, amountForm, blobs }: Run,
  { chainId, assetType }: AssetId,
  owners: readonly Address[],
): VaultEntry {
  const owner = runOwner ?? readOwner(input, owners, ownerForm);
  const amount = amountForm === 0 ? 1n : readAmount(input, amountForm);
  return { chainId, owner, assetType, amount, blob: blobs.read() };
}

function skipRecords({ ownerForm, amountForm, blobs }: Run, count: number): void {
  const ownerBytes = [format.OWNER_BYTES, 1, 2, 0][ownerForm] as number;
  blobs.skip(count, ownerBytes + amountForm);
}

function requireForms(
  input: BatchInput,
  standard: Standard | null,
  amountForm: number,
  blobForm: number,
): void {
  if (amountForm > format.MAX_AMOUNT_FORM) throw input.refusal("amount_form", 1);
  if (standard === null) return;
  if ((standard === "erc20") !== (blobForm === format.BlobForm.empty))
    throw input.refusal("blob_form", 1);
  if (standard === "erc721" && amountForm !== 0) throw input.refusal("erc721_amount", 1);
}

function readLength(input: BatchInput, slotsBefore: number, maxSlots: number): number {
  const length = input.number(3);
  if (length === 0) throw input.refusal("run_empty", 3);
  if (slotsBefore + length > maxSlots) throw input.refusal("too_many_slots", 3);
  return length;
}

function readOwner(input: BatchInput, owners: readonly Address[], ownerForm: number): Address {
  return ownerForm === format.OwnerForm.inline
    ? input.hex(format.OWNER_BYTES)
    : readIndexedOwner(input, owners, ownerForm);
}

function readIndexedOwner(input: BatchInput, owners: readonly Address[], width: number): Address {
  const owner = owners[input.number(width)];
  if (owner === undefined) throw input.refusal("owner_index", width);
  return owner;
}

function readAmount(input: BatchInput, width: number): bigint {
  const amount = input.uint(width);
  if (amount === 0n || amount > MAX_AMOUNT) throw input.refusal("amount_out_of_range", width);
  return amount;
}

interface RunBlobs {
  read(): Hex;
  /** Skips whole records, whose other parts take so many bytes each. */
  skip(count: number, otherBytes: number): void;
}

const NO_BLOBS: RunBlobs = { read: () => "0x", skip: () => {} };

function readBlobs(input: BatchInput, blobForm: number, length: number): RunBlobs {
  const skipFixed = (bytes: number) => (count: number, otherBytes: number) =>
    input.skip(count * (otherBytes + bytes));
  if (blobForm === format.BlobForm.empty) return { read: () => "0x", skip: skipFixed(0) };
  const blobLength = input.number(1);
  if (blobForm === format.BlobForm.raw && blobLength > 0)
    return { read: () => input.hex(blobLength), skip: skipFixed(blobLength) };
  if (blobForm === format.BlobForm.raw) {
    const skip = (count: number, otherBytes: number) => {
      for (let i = 0; i < count; i++) {
        input.skip(otherBytes);
        input.skip(input.number(1));
      }
    };
    const read = () => {
      const own = input.number(1);
      if (own === 0) throw input.refusal("blob_empty", 1);
      return input.hex(own);
    };
    return { read, skip };
  }
  if (blobLength < 1 || blobLength > format.MAX_PACKED_DIGITS)
    throw input.refusal("digits_out_of_range", 1);
  const decimal = new Uint8Array(blobLength);
  if (blobForm === format.BlobForm.packed) {
    const read = () => {
      readNibbles(input, decimal, 0xf);
      return nibbleBlob(decimal);
    };
    return { read, skip: skipFixed(Math.ceil(blobLength / 2)) };
  }
  readNibbles(input, decimal, 9);
  if (blobLength > 1 && decimal[0] === 0)
    throw input.refusal("leading_zero", Math.ceil(blobLength / 2));
  requireRange(input, decimal, length);
  const read = () => {
    const blob = nibbleBlob(decimal);
    increment(decimal);
    return blob;
  };
  const skip = (count: number, otherBytes: number) => {
    input.skip(count * otherBytes);
    for (let i = 0; i < count; i++) increment(decimal);
  };
  return { read, skip };
}

/**
 * Reads packed digits, right-aligned in their bytes, into one digit a byte. No digit may be above
 * `most`.
 */
function readNibbles(input: BatchInput, digits: Uint8Array, most: number): void {
  const bytes = Math.ceil(digits.length / 2);
  input.require(bytes);
  let next = 0;
  for (let nibble = 0; nibble < bytes * 2; nibble++) {
    const value = input.peekNibble(nibble);
    const isFront = nibble < bytes * 2 - digits.length;
    if (value > (isFront ? 0 : most)) throw input.refusal("digit_invalid");
    if (!isFront) digits[next++] = value;
  }
  input.offset += bytes;
}

function requireRange(input: BatchInput, first: Uint8Array, length: number): void {
  const last = BigInt(first.join("")) + BigInt(length - 1);
  if (last >= 10n ** BigInt(first.length))
    throw input.refusal("range_overflow", Math.ceil(first.length / 2));
}

function increment(decimal: Uint8Array): void {
  for (let i = decimal.length - 1; i >= 0; i--) {
    const digit = decimal[i] ?? 0;
    decimal[i] = digit === 9 ? 0 : digit + 1;
    if (digit !== 9) return;
  }
}

/** Nibbles as the hex of characters 0x30 to 0x3f. */
function nibbleBlob(nibbles: Uint8Array): Hex {
  let blob: Hex = "0x";
  for (const nibble of nibbles) blob += `3${nibble.toString(16)}`;
  return blob as Hex;
}
