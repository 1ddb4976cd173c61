import { MintmarkError } from "../errors.ts";
import { MAX_AMOUNT } from "../model.ts";
import type { VaultContent } from "../ports.ts";
import { requireInteger } from "./bounds.ts";
import {
  equalBytes,
  HASH_BYTES,
  hashMessages,
  hexToBytes,
  readNumber,
  writeNumber,
} from "./hex.ts";
import { MAX_BATCH_ASSETS } from "./manifest.ts";
import { decimalTokenId, MAX_MINTING_BLOB_BYTES } from "./minting-blob.ts";
import { packVaultId, unpackVaultId, type VaultPlace } from "./vault.ts";

/**
 * The one encoding of a vault (docs/protocol.md 2): a head of 32 bytes, and up to nine
 * continuations of 31 bytes. Trees hash the words, blobs hold them, batch data spells them.
 *
 * ```
 * head = tag:u8 assetIndex:u8 owner:20 payload:10      tag = form(4) continuations(4)
 * ```
 *
 * Amount and minting blob alone decide the form, so a vault has one encoding. A reader encodes what
 * it has read once more and compares, as L1 does.
 */
export const WORD_BYTES = 32;
export const CONTINUATION_BYTES = 31;

/** The upper half of a tag. Zero stands for a void slot, whose head is zero as a whole. */
const Form = {
  amount: 1,
  /** Amount 1 of a number: decimal, `{id}:{}` or raw, in this order. */
  number: 2,
  /** A decimal below 2^40, and an amount below 2^40 other than 1. */
  counted: 5,
  bytes: 6,
} as const;

const OWNER = 2;
const PAYLOAD = 22;
/** The last eight bytes of a payload, which follow the place of the first continuation. */
const LAST_EIGHT = 24;
const COUNTED_ID = 27;
const COUNTED_BYTES = WORD_BYTES - COUNTED_ID;
const COUNT_MASK = 0x0f;

/** Digits that a number holds exactly. */
const EXACT_DIGITS = 15;
const ZERO = 0x30;
const OPEN = 0x7b;
/** `}:{}` ends a minting blob `{id}:{}`. */
const NO_BLUEPRINT = [0x7d, 0x3a, 0x7b, 0x7d] as const;
const RAW = 2;
const NO_NUMBER = 3;

const LEAF_PREFIX = 0x00;
const LEAF_HEADER_BYTES = 9;
/** Few enough leaves are packed and hashed at once to stay in the cache. */
const LEAVES_PER_CHUNK = 1024;

/** A vault as its words hold it. Batch and slot name its place, the manifest its asset. */
export interface WordVault {
  /** Place in the batch's manifest, 0 to 254. */
  readonly assetIndex: number;
  readonly owner: Uint8Array;
  readonly amount: bigint;
  readonly mintingBlob: Uint8Array;
}

/** The words of one vault. */
export interface VaultWords {
  /** 32 bytes. The place of the first continuation is zero. */
  readonly head: Uint8Array;
  /** The continuations, 31 bytes each. */
  readonly rest: Uint8Array;
}

/**
 * The words of slots in order.
 *
 * @example
 * const words = new Words(2);
 * words.addVoid();
 * words.addSpelt(head, rest);
 */
export class Words {
  count = 0;
  /** 32 bytes a slot. */
  readonly heads: Uint8Array;
  /** Where the continuations of each slot end in {@link rests}, and the next slot's begin. */
  readonly ends: Uint32Array;
  rests = new Uint8Array(0);

  /** @param most - slots that will be added */
  constructor(most: number) {
    this.heads = new Uint8Array(most * WORD_BYTES);
    this.ends = new Uint32Array(most);
  }

  startOf(slot: number): number {
    return slot === 0 ? 0 : this.ends[slot - 1]!;
  }

  /** Bytes of all continuations. */
  get restBytes(): number {
    return this.startOf(this.count);
  }

  headAt(slot: number): Uint8Array {
    return this.heads.subarray(slot * WORD_BYTES, (slot + 1) * WORD_BYTES);
  }

  restAt(slot: number): Uint8Array {
    return this.rests.subarray(this.startOf(slot), this.ends[slot]);
  }

  /** The words of `count` slots from `first` on. */
  slice(first: number, count: number): Words {
    const part = new Words(count);
    for (let slot = first; slot < first + count; slot++)
      part.addSpelt(this.headAt(slot), this.restAt(slot));
    return part;
  }

  addVoid(): void {
    this.#end(0);
  }

  /** Adds a slot's words as somebody has spelt them. */
  addSpelt(head: Uint8Array, rest: Uint8Array): void {
    this.heads.set(head, this.count * WORD_BYTES);
    const at = this.#room(rest.length);
    this.rests.set(rest, at);
    this.#end(rest.length);
  }

  /** Adds a vault. Amount and minting blob are as {@link writePayload} takes them. */
  add(
    assetIndex: number,
    owner: Uint8Array,
    amountHigh: number,
    amountLow: number,
    mintingBlobs: Uint8Array,
    start: number,
    end: number,
  ): void {
    const { heads } = this;
    const head = this.count * WORD_BYTES;
    heads[head + 1] = assetIndex;
    for (let i = 0; i < PAYLOAD - OWNER; i++) heads[head + OWNER + i] = owner[i]!;
    const more = writePayload(heads, head, amountHigh, amountLow, mintingBlobs, start, end);
    if (more > 0) {
      const at = this.#room(more * CONTINUATION_BYTES);
      if (heads[head]! >> 4 === Form.bytes) {
        this.rests[at] = end - start;
        this.rests.set(mintingBlobs.subarray(start, end), at + 1);
      } else this.rests.set(ID.subarray(1), at);
    }
    this.#end(more * CONTINUATION_BYTES);
  }

  #room(bytes: number): number {
    const at = this.restBytes;
    if (at + bytes > this.rests.length) {
      const larger = new Uint8Array(Math.max(2 * this.rests.length, at + bytes));
      larger.set(this.rests);
      this.rests = larger;
    }
    return at;
  }

  #end(bytes: number): void {
    this.ends[this.count] = this.restBytes + bytes;
    this.count++;
  }
}

/** The id that {@link writePayload} found in a minting blob, 32 bytes. */
const ID = new Uint8Array(32);

/**
 * Writes a head's tag and payload, the latter without the place of continuations.
 *
 * @param amountHigh - the upper 32 bits of the amount, which is 1 to 2^63 - 1
 * @param mintingBlobs - holds the minting blob of up to 255 bytes from `start` to `end`
 * @returns the number of continuations
 */
export function writePayload(
  head: Uint8Array,
  at: number,
  amountHigh: number,
  amountLow: number,
  mintingBlobs: Uint8Array,
  start: number,
  end: number,
): number {
  for (let i = at + PAYLOAD; i < at + WORD_BYTES; i++) head[i] = 0;
  if (start === end) {
    head[at] = Form.amount << 4;
    writeAmount(head, at + LAST_EIGHT, amountHigh, amountLow);
    return 0;
  }
  const spelling = numberIn(mintingBlobs, start, end);
  if (spelling !== NO_NUMBER && amountHigh === 0 && amountLow === 1) {
    const isShort = isZero(ID, PAYLOAD);
    head[at] = ((Form.number + spelling) << 4) | (isShort ? 0 : 1);
    if (isShort) for (let i = PAYLOAD; i < WORD_BYTES; i++) head[at + i] = ID[i]!;
    else head[at + WORD_BYTES - 1] = ID[0]!;
    return isShort ? 0 : 1;
  }
  if (spelling === 0 && amountHigh < 0x100 && isZero(ID, COUNTED_ID)) {
    head[at] = Form.counted << 4;
    head[at + PAYLOAD] = amountHigh;
    writeWord(head, at + PAYLOAD + 1, amountLow);
    for (let i = COUNTED_ID; i < WORD_BYTES; i++) head[at + i] = ID[i]!;
    return 0;
  }
  const more = Math.floor((end - start + CONTINUATION_BYTES) / CONTINUATION_BYTES);
  head[at] = (Form.bytes << 4) | more;
  writeAmount(head, at + LAST_EIGHT, amountHigh, amountLow);
  return more;
}

/** Bytes of a head's payload without its leading zeros, 0 to 10. */
export function payloadBytes(heads: Uint8Array, at: number): number {
  let first = at + PAYLOAD;
  while (first < at + WORD_BYTES && heads[first] === 0) first++;
  return at + WORD_BYTES - first;
}

/**
 * {@link payloadBytes} of the head that {@link writePayload} writes without continuations for a
 * token whose minting blob is a decimal below 2^53; -1 for a negative id, and where that head is
 * another one.
 */
export function shortPayloadBytes(amountHigh: number, amountLow: number, id: number): number {
  if (amountHigh === 0 && amountLow === 1) return id < 0 ? -1 : bytesOfNumber(id);
  if (id < 0 || id >= 2 ** (8 * COUNTED_BYTES) || amountHigh >= 0x100) return -1;
  return COUNTED_BYTES + (amountHigh > 0 ? 5 : bytesOfNumber(amountLow));
}

/** Bytes of a whole number below 2^53 without leading zeros. */
function bytesOfNumber(value: number): number {
  if (value >= 2 ** 32) return 4 + bytesOfNumber(Math.floor(value / 2 ** 32));
  return 4 - (Math.clz32(value) >> 3);
}

/** How many continuations a head's tag names, 0 to 15. */
export function continuationsOf(tag: number): number {
  return tag & COUNT_MASK;
}

/** The place of the first continuation that a head in a blob names. */
export function placeIn(heads: Uint8Array, at: number): number {
  return (heads[at + PAYLOAD]! << 8) | heads[at + PAYLOAD + 1]!;
}

export function writePlace(heads: Uint8Array, at: number, place: number): void {
  heads[at + PAYLOAD] = place >> 8;
  heads[at + PAYLOAD + 1] = place & 0xff;
}

/**
 * The words of a vault.
 *
 * @throws MintmarkError `amount_out_of_range`, `minting_blob_invalid`, or `validation_failed` for
 *   an index above 254
 *
 * @example
 * const { head, rest } = wordsOf({ assetIndex, owner, amount: 1n, mintingBlob });
 */
export function wordsOf({ assetIndex, owner, amount, mintingBlob }: WordVault): VaultWords {
  if (typeof amount !== "bigint" || amount < 1n || amount > MAX_AMOUNT)
    throw new MintmarkError("amount_out_of_range");
  if (mintingBlob.length > MAX_MINTING_BLOB_BYTES) throw new MintmarkError("minting_blob_invalid");
  requireInteger("index of the asset", assetIndex, 0, MAX_BATCH_ASSETS - 1);
  const words = new Words(1);
  const [high, low] = [Number(amount >> 32n), Number(amount & 0xffff_ffffn)];
  words.add(assetIndex, owner, high, low, mintingBlob, 0, mintingBlob.length);
  return { head: words.headAt(0), rest: words.restAt(0) };
}

/**
 * The vault of its words; null when the slot is void, or its words are not exactly a vault's. Such
 * a slot pays nobody.
 *
 * @example
 * const vault = readWords({ head: words.headAt(slot), rest: words.restAt(slot) });
 */
export function readWords({ head, rest }: VaultWords): WordVault | null {
  const tag = head[0]!;
  if (rest.length !== continuationsOf(tag) * CONTINUATION_BYTES) return null;
  const read = contentOf(tag >> 4, head, rest);
  if (read === null || read.amount < 1n || read.amount > MAX_AMOUNT) return null;
  const assetIndex = head[1]!;
  if (assetIndex >= MAX_BATCH_ASSETS) return null;
  const vault = { assetIndex, owner: head.slice(OWNER, PAYLOAD), ...read };
  const again = wordsOf(vault);
  return equalBytes(again.head, head) && equalBytes(again.rest, rest) ? vault : null;
}

/** Whether a slot's words are those of a void one. */
export function isVoid({ head, rest }: VaultWords): boolean {
  return rest.length === 0 && isZero(head, WORD_BYTES);
}

/**
 * The leaves of slots, 32 bytes each: `keccak256(0x00 ‖ vaultId(8) ‖ head(32) ‖ continuations)`.
 *
 * @param firstSlot - the slot of the first words, default 0
 * @throws MintmarkError `validation_failed` for a place out of bounds
 */
export function leavesOfWords(
  words: Words,
  { mode, batchNumber }: Pick<VaultPlace, "mode" | "batchNumber">,
  firstSlot = 0,
): Uint8Array {
  const leaves = new Uint8Array(words.count * HASH_BYTES);
  const firstId = packVaultId({ mode, batchNumber, slot: firstSlot });
  const high = Number(firstId >> 32n);
  const low = Number(firstId & 0xffff_ffffn);
  const { heads, rests, ends: restEnds } = words;
  const from = new DataView(heads.buffer, heads.byteOffset);
  const chunk = Math.min(LEAVES_PER_CHUNK, words.count);
  const ends = new Uint32Array(chunk);
  let preimages = new Uint8Array(0);
  let into = new DataView(preimages.buffer);
  for (let start = 0; start < words.count; start += chunk) {
    const count = Math.min(chunk, words.count - start);
    const more = words.startOf(start + count) - words.startOf(start);
    const bytes = count * (LEAF_HEADER_BYTES + WORD_BYTES) + more;
    if (bytes > preimages.length) {
      preimages = new Uint8Array(bytes);
      into = new DataView(preimages.buffer);
    }
    let at = 0;
    let rest = words.startOf(start);
    for (let slot = start; slot < start + count; slot++) {
      preimages[at] = LEAF_PREFIX;
      into.setUint32(at + 1, high);
      // A slot has the last 20 bits of an id, so nothing is carried into the upper word.
      into.setUint32(at + 5, low + slot);
      at += LEAF_HEADER_BYTES;
      const end = (slot + 1) * WORD_BYTES;
      for (let i = slot * WORD_BYTES; i < end; i += 4, at += 4)
        into.setUint32(at, from.getUint32(i));
      for (; rest < restEnds[slot]!; rest++) preimages[at++] = rests[rest]!;
      ends[slot - start] = at;
    }
    const digests = leaves.subarray(start * HASH_BYTES, (start + count) * HASH_BYTES);
    hashMessages(preimages.subarray(0, at), ends.subarray(0, count), digests);
  }
  return leaves;
}

/**
 * The leaf of one vault; 32 bytes.
 *
 * @param assetIndex - the place of its asset in the batch's manifest
 * @throws MintmarkError `validation_failed`, `amount_out_of_range` or `minting_blob_invalid` when
 *   the content is out of bounds
 *
 * @example
 * bytesToHex(vaultLeaf(proof.vault, proof.assetPath.index)) === proof.leaf; // true
 */
export function vaultLeaf(vault: VaultContent, assetIndex: number): Uint8Array {
  const { mode, batchNumber, slot } = unpackVaultId(vault.vaultId);
  const words = new Words(1);
  const { head, rest } = wordsOf({
    assetIndex,
    owner: hexToBytes(vault.owner, PAYLOAD - OWNER),
    amount: vault.amount,
    mintingBlob: hexToBytes(vault.mintingBlob),
  });
  words.addSpelt(head, rest);
  return leavesOfWords(words, { mode, batchNumber }, slot);
}

/** The content that head and continuations spell, canonical or not; null when the form is none. */
function contentOf(
  form: number,
  head: Uint8Array,
  rest: Uint8Array,
): Pick<WordVault, "amount" | "mintingBlob"> | null {
  if (form === Form.amount)
    return { amount: readNumber(head, PAYLOAD, 10), mintingBlob: new Uint8Array() };
  if (form >= Form.number && form < Form.counted) {
    const id = new Uint8Array(WORD_BYTES);
    if (rest.length === 0) id.set(head.subarray(PAYLOAD), PAYLOAD);
    else {
      id[0] = head[WORD_BYTES - 1]!;
      id.set(rest.subarray(0, CONTINUATION_BYTES), 1);
    }
    return { amount: 1n, mintingBlob: spelled(form - Form.number, id) };
  }
  if (form === Form.counted) {
    const id = new Uint8Array(WORD_BYTES);
    id.set(head.subarray(COUNTED_ID), COUNTED_ID);
    return { amount: readNumber(head, PAYLOAD, COUNTED_ID - PAYLOAD), mintingBlob: spelled(0, id) };
  }
  if (form !== Form.bytes || rest.length === 0) return null;
  const mintingBlob = rest.slice(1, 1 + rest[0]!);
  return { amount: readNumber(head, LAST_EIGHT, 8), mintingBlob };
}

/** The minting blob of an id of 32 bytes. */
function spelled(spelling: number, id: Uint8Array): Uint8Array {
  if (spelling === RAW) return id;
  const digits = readNumber(id, 0, WORD_BYTES).toString();
  const text = spelling === 0 ? digits : `{${digits}}:{}`;
  return Uint8Array.from(text, (character) => character.charCodeAt(0));
}

/**
 * The number that a minting blob spells; its id goes to {@link ID}. 32 digits are a decimal, not
 * raw bytes.
 */
function numberIn(mintingBlobs: Uint8Array, start: number, end: number): number {
  if (isDecimal(mintingBlobs, start, end)) return 0;
  const behind = end - NO_BLUEPRINT.length;
  if (
    mintingBlobs[start] === OPEN &&
    behind > start + 1 &&
    NO_BLUEPRINT.every((character, i) => mintingBlobs[behind + i] === character) &&
    isDecimal(mintingBlobs, start + 1, behind)
  )
    return 1;
  if (end - start !== WORD_BYTES) return NO_NUMBER;
  ID.set(mintingBlobs.subarray(start, end));
  return RAW;
}

/** Whether a text is a canonical decimal below 2^256, whose value goes to {@link ID} then. */
function isDecimal(text: Uint8Array, start: number, end: number): boolean {
  const digits = end - start;
  if (digits > EXACT_DIGITS) {
    const id = decimalTokenId(text.subarray(start, end));
    if (id !== null) writeNumber(id, WORD_BYTES, ID, 0);
    return id !== null;
  }
  if (digits === 0 || (digits > 1 && text[start] === ZERO)) return false;
  let value = 0;
  for (let i = start; i < end; i++) {
    const digit = text[i]! - ZERO;
    if (digit < 0 || digit > 9) return false;
    value = value * 10 + digit;
  }
  ID.fill(0, 0, LAST_EIGHT);
  writeWord(ID, LAST_EIGHT, Math.floor(value / 2 ** 32));
  writeWord(ID, LAST_EIGHT + 4, value);
  return true;
}

function isZero(bytes: Uint8Array, end: number): boolean {
  for (let i = 0; i < end; i++) if (bytes[i] !== 0) return false;
  return true;
}

function writeAmount(into: Uint8Array, at: number, high: number, low: number): void {
  writeWord(into, at, high);
  writeWord(into, at + 4, low);
}

function writeWord(into: Uint8Array, at: number, word: number): void {
  const low = word >>> 0;
  into[at] = low >>> 24;
  into[at + 1] = low >>> 16;
  into[at + 2] = low >>> 8;
  into[at + 3] = low;
}
