import { MintmarkError } from "../errors.ts";
import { type Hex, MAX_BATCH_VAULTS, type Mode } from "../model.ts";
import type { AssetId, VaultContent } from "../ports.ts";
import { invariant, MAX_UINT64, requireBigint, requireInteger } from "./bounds.ts";
import { bytesToHex, hexToBytes, writeHex } from "./hex.ts";
import { compareAssets, MAX_BATCH_ASSETS } from "./manifest.ts";
import { packVaultId } from "./vault.ts";
import {
  CONTINUATION_BYTES,
  continuationsOf,
  isVoid,
  leavesOfWords,
  payloadBytes,
  readWords,
  WORD_BYTES,
  Words,
  type WordVault,
  wordsOf,
} from "./words.ts";

/**
 * The batch data format (docs/protocol.md 4): the words of a batch's vaults. L1 gets it as
 * calldata; a committee stores it.
 *
 * ```
 * version:u8  assetCount:u16 (chainId:u64 assetType:u256)*  ownerCount:u16 (address:20)*
 * payloadBytes:u8 vaultCount:u32  record*vaultCount  continuation:31*
 *
 * record: tag:u8 assetIndex:u8 (owner:20 | ownerIndex:u16) payload:payloadBytes
 * ```
 *
 * A record is a vault's head with two narrower columns: it has an index where there are owners in
 * front of the records. So all records have one width. The continuations follow in slot order.
 */
const BATCH_DATA_VERSION = 0x01;
export const ASSET_ENTRY_BYTES = 40;
const OWNER_BYTES = 20;
/** Most owners in the dictionary, because its count has two bytes. */
const MAX_DICTIONARY = 0xffff;
const MAX_PAYLOAD = 10;
const OWNER_AT = 2;
const OWNER_INDEX_BYTES = 2;
const NO_CONTINUATION = new Uint8Array(0);
/** Version, number of assets, number of owners, width of payloads, number of slots. */
const HEADER_BYTES = 10;

/**
 * One slot in batch data: a vault without its place, which follows from mode, batch number and
 * slot.
 */
export type VaultEntry = Omit<VaultContent, "vaultId">;

/** The words of a batch's slots, and the manifest that their asset indexes refer to. */
export interface WordBatch {
  /** Strictly ascending by chain and asset type. */
  readonly assets: readonly AssetId[];
  readonly words: Words;
}

/** A decoded batch. */
export interface DecodedBatch extends WordBatch {
  /** The vaults in slot order; null for a slot that is void, or is no vault and pays nobody. */
  readonly slots: readonly (VaultEntry | null)[];
}

/** Most bytes of batch data with so many assets, slots and continuations. */
export function batchDataBound(
  assets: number,
  slots: number,
  payloadBytes: number,
  continuations: number,
): number {
  const records = slots * (OWNER_AT + OWNER_BYTES + payloadBytes);
  return HEADER_BYTES + assets * ASSET_ENTRY_BYTES + records + continuations * CONTINUATION_BYTES;
}

/**
 * The words of slots; null for a void one.
 *
 * @throws MintmarkError `validation_failed`, `amount_out_of_range`, `minting_blob_invalid` or
 *   `batch_too_large` (more than 255 assets) when no encoding can hold the slots
 *
 * @example
 * const { assets, words } = wordBatch(slots);
 */
export function wordBatch(slots: readonly (VaultEntry | null)[]): WordBatch {
  requireInteger("number of slots", slots.length, 1, MAX_BATCH_VAULTS);
  const assets = manifestOf(slots);
  const places = new Map(assets.map((asset, place) => [keyOf(asset), place]));
  const words = new Words(slots.length);
  for (const entry of slots) {
    if (entry === null) {
      words.addVoid();
      continue;
    }
    const { head, rest } = wordsOf({
      assetIndex: places.get(keyOf(entry)) as number,
      owner: hexToBytes(entry.owner, OWNER_BYTES),
      amount: entry.amount,
      mintingBlob: hexToBytes(entry.mintingBlob),
    });
    words.addSpelt(head, rest);
  }
  return { assets, words };
}

const keyOf = ({ chainId, assetType }: AssetId) => `${chainId} ${assetType.toLowerCase()}`;

function manifestOf(slots: readonly (VaultEntry | null)[]): AssetId[] {
  const distinct = new Map<string, AssetId>();
  for (const entry of slots) {
    if (entry === null || distinct.has(keyOf(entry))) continue;
    const { chainId, assetType } = entry;
    requireBigint("chainId", chainId, 0n, MAX_UINT64);
    distinct.set(keyOf(entry), { chainId, assetType });
  }
  if (distinct.size > MAX_BATCH_ASSETS)
    throw new MintmarkError("batch_too_large", `a batch holds at most ${MAX_BATCH_ASSETS} assets`);
  return [...distinct.values()].sort(compareAssets);
}

/**
 * Encodes the slots of a batch (docs/protocol.md 4). A pure function, linear in the number of
 * slots; `decodeBatch` inverts it.
 *
 * @param slots - 1 to 2^20 in slot order; null for a void one. Vault ids are not read
 * @throws MintmarkError as {@link wordBatch} does
 *
 * @example
 * const vault = { chainId: 1n, owner, assetType, amount: 1n, mintingBlob: "0x3137" } as const;
 * const data = encodeBatchData([vault, null]);
 * decodeBatch(data).slots.length; // 2 slots; the second one is void
 */
export function encodeBatchData(slots: readonly (VaultEntry | null)[]): Uint8Array {
  return batchDataOf(wordBatch(slots));
}

/** {@link encodeBatchData} of words. Owners are in front of the records where that is shorter. */
export function batchDataOf({ assets, words }: WordBatch): Uint8Array {
  const { count, heads } = words;
  const named = ownersOf(words);
  const ownerBytes = named === null ? OWNER_BYTES : OWNER_INDEX_BYTES;
  let width = 0;
  for (let at = 0; at < count * WORD_BYTES; at += WORD_BYTES)
    width = Math.max(width, payloadBytes(heads, at));
  const size = OWNER_AT + ownerBytes + width;
  const front = assets.length * ASSET_ENTRY_BYTES + (named?.slots.length ?? 0) * OWNER_BYTES;
  const output = new BatchOutput(HEADER_BYTES + front + size * count + words.restBytes);
  output.uint(BATCH_DATA_VERSION, 1);
  output.uint(assets.length, 2);
  for (const { chainId, assetType } of assets) {
    output.u64(chainId);
    output.hex(assetType, 32);
  }
  output.uint(named?.slots.length ?? 0, 2);
  for (const slot of named?.slots ?? []) {
    const at = slot * WORD_BYTES + OWNER_AT;
    output.slice(heads, at, at + OWNER_BYTES);
  }
  output.uint(width, 1);
  output.uint(count, 4);
  for (let slot = 0, at = 0; slot < count; slot++, at += WORD_BYTES) {
    output.slice(heads, at, at + OWNER_AT);
    if (named === null) output.slice(heads, at + OWNER_AT, at + OWNER_AT + OWNER_BYTES);
    else output.uint(named.places[slot]!, OWNER_INDEX_BYTES);
    output.slice(heads, at + WORD_BYTES - width, at + WORD_BYTES);
  }
  output.slice(words.rests, 0, words.restBytes);
  return output.bytes;
}

/**
 * The owners of slots in order of first appearance, each by its first slot, and the place of each
 * slot's owner; null when the records are shorter with their owners. A void slot's owner is zero.
 */
function ownersOf({ count, heads }: Words) {
  const most = Math.min(
    MAX_DICTIONARY,
    Math.floor((count * (OWNER_BYTES - OWNER_INDEX_BYTES) - 1) / OWNER_BYTES),
  );
  const view = new DataView(heads.buffer, heads.byteOffset);
  const known = new Map<string, number>();
  const slots: number[] = [];
  const places = new Uint16Array(count);
  for (let slot = 0; slot < count; slot++) {
    const key = ownerKey(view, slot * WORD_BYTES + OWNER_AT);
    let place = known.get(key);
    if (place === undefined) {
      if (slots.length === most) return null;
      place = slots.length;
      known.set(key, place);
      slots.push(slot);
    }
    places[slot] = place;
  }
  return { slots, places };
}

/** Ten characters of two bytes each. */
function ownerKey(view: DataView, at: number): string {
  return String.fromCharCode(
    view.getUint16(at),
    view.getUint16(at + 2),
    view.getUint16(at + 4),
    view.getUint16(at + 6),
    view.getUint16(at + 8),
    view.getUint16(at + 10),
    view.getUint16(at + 12),
    view.getUint16(at + 14),
    view.getUint16(at + 16),
    view.getUint16(at + 18),
  );
}

/**
 * The words of batch data. It takes exactly what L1 takes, whatever the records say: see {@link
 * slotsOf}.
 *
 * @throws BatchDataError with the reason and the offset
 *
 * @example
 * const { words } = readBatchData(data);
 * const content = new BatchTree(leavesOfWords(words, { mode, batchNumber })).root;
 */
export function readBatchData(data: Uint8Array): WordBatch {
  const input = new BatchInput(data);
  if (input.number(1) !== BATCH_DATA_VERSION) throw input.refusal("version_unknown", 1);
  const assets = readAssets(input);
  const owners = input.number(2);
  const ownersAt = input.offset;
  input.skip(owners * OWNER_BYTES);
  const width = input.number(1);
  if (width > MAX_PAYLOAD) throw input.refusal("payload_bytes", 1);
  const count = input.number(4);
  if (count === 0) throw input.refusal("no_slot", 4);
  if (count > MAX_BATCH_VAULTS) throw input.refusal("too_many_slots", 4);
  const ownerBytes = owners === 0 ? OWNER_BYTES : OWNER_INDEX_BYTES;
  const size = OWNER_AT + ownerBytes + width;
  input.require(count * size);
  const words = new Words(count);
  const head = new Uint8Array(WORD_BYTES);
  let record = input.offset;
  let rest = record + count * size;
  for (; words.count < count; record += size) {
    // Loops, because views of so few bytes take longer than their copies.
    for (let i = 0; i < OWNER_AT; i++) head[i] = data[record + i]!;
    let owner = record + OWNER_AT;
    if (owners > 0) {
      const place = (data[owner]! << 8) | data[owner + 1]!;
      if (place >= owners) throw new BatchDataError("owner_index", owner);
      owner = ownersAt + place * OWNER_BYTES;
    }
    for (let i = 0; i < OWNER_BYTES; i++) head[OWNER_AT + i] = data[owner + i]!;
    for (let i = 1; i <= width; i++) head[WORD_BYTES - i] = data[record + size - i]!;
    const end = rest + continuationsOf(head[0]!) * CONTINUATION_BYTES;
    if (end > data.length) throw new BatchDataError("truncated", rest);
    words.addSpelt(head, rest === end ? NO_CONTINUATION : data.subarray(rest, end));
    rest = end;
  }
  if (rest !== data.length) throw new BatchDataError("trailing", rest);
  return { assets, words };
}

/**
 * The slots of a batch, each read by itself: null for a void one, and for words that are no vault's
 * and pay nobody.
 *
 * @example
 * const vaults = placeVaults(slotsOf(readBatchData(data)), "zk-rollup", 12);
 */
export function slotsOf(batch: WordBatch): (VaultEntry | null)[] {
  return Array.from({ length: batch.words.count }, (_, slot) => slotOf(batch, slot));
}

/** One of the slots that {@link slotsOf} returns. */
export function slotOf({ assets, words }: WordBatch, slot: number): VaultEntry | null {
  const vault = vaultAt(words, slot);
  return vault === null ? null : entryOf(vault, assets);
}

/**
 * The vaults of single slots.
 *
 * @param leftOut - places in the manifest of the assets whose vaults are not returned
 */
export function slotsAt(
  { assets, words }: WordBatch,
  slots: readonly number[],
  leftOut: readonly number[] = [],
): Map<number, VaultEntry> {
  const found = new Map<number, VaultEntry>();
  for (const slot of slots) {
    const vault = slot < words.count ? vaultAt(words, slot) : null;
    const entry = vault === null ? null : entryOf(vault, assets);
    if (vault !== null && entry !== null && !leftOut.includes(vault.assetIndex))
      found.set(slot, entry);
  }
  return found;
}

/**
 * The first slot whose words are neither those of a void slot nor those of a vault of one of the
 * manifest's assets; null when there is none.
 *
 * @param slots - what {@link slotsOf} returns of the batch
 */
export function firstMalformed(
  batch: WordBatch,
  slots: readonly (VaultEntry | null)[] = slotsOf(batch),
): number | null {
  const first = slots.findIndex((entry, slot) => entry === null && isMalformed(batch, slot));
  return first < 0 ? null : first;
}

/** Whether a slot without a vault is not void either. */
export function isMalformed({ words }: WordBatch, slot: number): boolean {
  return !isVoid({ head: words.headAt(slot), rest: words.restAt(slot) });
}

/** The vault of a slot's words, whatever asset it names; null for a void slot. */
export function vaultAt(words: Words, slot: number): WordVault | null {
  return readWords({ head: words.headAt(slot), rest: words.restAt(slot) });
}

/** null for a vault of an asset that the manifest lacks. */
function entryOf(vault: WordVault, assets: readonly AssetId[]): VaultEntry | null {
  const asset = assets[vault.assetIndex];
  if (asset === undefined) return null;
  const { chainId, assetType } = asset;
  return {
    chainId,
    owner: bytesToHex(vault.owner),
    assetType,
    amount: vault.amount,
    mintingBlob: bytesToHex(vault.mintingBlob),
  };
}

/**
 * Decodes batch data: words, slots and manifest. Applies all rules of docs/protocol.md 4.
 *
 * @throws BatchDataError with the reason and the offset
 *
 * @example
 * const { slots, assets } = decodeBatch(data);
 * const vaults = placeVaults(slots, "zk-rollup", 12);
 */
export function decodeBatch(data: Uint8Array): DecodedBatch {
  const batch = readBatchData(data);
  return { ...batch, slots: slotsOf(batch) };
}

/**
 * The leaves of a batch in a tree, 32 bytes a slot.
 *
 * @example
 * const tree = new BatchTree(batchLeaves(decodeBatch(data), "zk-rollup", 12));
 */
export function batchLeaves(
  { words }: Pick<WordBatch, "words">,
  mode: Mode,
  batchNumber: number,
): Uint8Array {
  return leavesOfWords(words, { mode, batchNumber });
}

/**
 * Adds the vault ids that follow from mode and batch number.
 *
 * @example
 * const vaults = placeVaults(decodeBatch(data).slots, "zk-rollup", 12);
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

/** The manifest of a batch's data. */
export function readAssets(input: BatchInput): AssetId[] {
  const count = input.number(2);
  if (count > MAX_BATCH_ASSETS) throw input.refusal("too_many_assets", 2);
  input.require(count * ASSET_ENTRY_BYTES);
  const assets: AssetId[] = [];
  for (let i = 0; i < count; i++) {
    const offset = input.offset;
    const asset = { chainId: input.uint(8), assetType: input.hex(32) };
    const last = assets[i - 1];
    if (last !== undefined && compareAssets(last, asset) >= 0)
      throw new BatchDataError("asset_order", offset);
    assets.push(asset);
  }
  return assets;
}

/**
 * The reasons for refusing batch data. They are stable: committee members and the engine show them.
 */
export const BATCH_DATA_REASONS = {
  version_unknown: "The first byte is not a known version.",
  truncated: "The data ends too early.",
  trailing: "The data goes on behind the last continuation.",
  no_slot: "The batch has no slot.",
  too_many_slots: "The batch has more slots than allowed.",
  too_many_assets: "The batch has more than 255 assets.",
  asset_order: "The assets are not strictly ascending by chain and asset type.",
  owner_index: "An owner index is outside the owner dictionary.",
  payload_bytes: "A payload has more than 10 bytes.",
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
      value = value * 0x100 + this.#data[this.offset]!;
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
}

/** Appends the big-endian values of a batch's data. */
export class BatchOutput {
  readonly #bytes: Uint8Array;
  #offset = 0;

  /** @param most - upper bound of the bytes */
  constructor(most: number) {
    this.#bytes = new Uint8Array(most);
  }

  /** The appended bytes, in memory of their own. */
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
    this.uint(Number(value >> 32n), 4);
    this.uint(Number(value & 0xffff_ffffn), 4);
  }

  hex(hex: string, size: number): void {
    this.#offset = writeHex(hex, size, this.#bytes, this.#offset);
  }

  slice(from: Uint8Array, start: number, end: number): void {
    for (let i = start; i < end; i++) this.#bytes[this.#offset++] = from[i]!;
  }
}
