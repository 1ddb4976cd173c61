import { MintmarkError } from "../errors.ts";
import { type Address, MAX_AMOUNT } from "../model.ts";
import { blobTextOf, decimalTokenId } from "./blob.ts";
import { bytesToHex, equalBytes, readNumber, writeNumber } from "./hex.ts";

/**
 * The field elements of a vault in an EIP-4844 blob (docs/protocol.md 4). Its head is the element
 * of its slot:
 *
 * ```
 * head         = tag:u8 assetIndex:u8 owner:20 payload:10
 * continuation = 0x0a content:31
 * ```
 *
 * Amount and minting blob alone decide the form, so a vault has one encoding. A reader encodes what
 * it has read once more and compares, as L1 does.
 */
export const ELEMENT_BYTES = 32;

/** The first byte of a head. Zero stands for a void slot, whose element is zero as a whole. */
const Form = {
  amount: 1,
  /** A number of less than 80 bits: decimal, `{id}:{}` or raw, in this order. Amount 1. */
  number: 2,
  /** A decimal below 2^40, an amount below 2^40 other than 1. */
  counted: 5,
  /** As `number`, of 80 bits or more. One continuation has its lower 248 bits. */
  longNumber: 6,
  /** Any other minting blob. Its length and its bytes are in one or two continuations. */
  bytes: 9,
} as const;
const CONTINUATION = 0x0a;
const NO_ELEMENTS = new Uint8Array();

const OWNER = 2;
const PAYLOAD = 22;
const CONTENT_BYTES = 31;
/** Most bytes of a minting blob in form `bytes`. */
const MAX_CONTENT_BYTES = 2 * CONTENT_BYTES - 1;
const SHORT_NUMBER = 1n << 80n;
const COUNTED = 1n << 40n;
const LOW_BITS = 248n;

/** How the minting blobs of numbers are written; an index is added to a form. */
const SPELLINGS = ["mintmark", "imx", "raw32"] as const;
const RAW_BYTES = 32;
const OPEN = 0x7b;
/** `}:{}`, what ends a blob `{id}:{}`. */
const NO_BLUEPRINT = new TextEncoder().encode("}:{}");

/** A vault as its elements hold it. Batch and slot name its place, the manifest its asset. */
export interface ElementVault {
  /** Place in the batch's manifest, 0 to 254. */
  readonly assetIndex: number;
  readonly owner: Uint8Array;
  readonly amount: bigint;
  readonly blob: Uint8Array;
}

/**
 * How many elements a vault takes.
 *
 * @returns 1 to 3; 0 when no form holds it, so that it belongs into a calldata batch
 */
export function elementCount(amount: bigint, blob: Uint8Array): number {
  return countOf(formOf(amount, blob).form, blob);
}

function countOf(form: number, blob: Uint8Array): number {
  if (form < Form.longNumber) return 1;
  if (form < Form.bytes) return 2;
  return blob.length > MAX_CONTENT_BYTES ? 0 : 2 + Number(blob.length >= CONTENT_BYTES);
}

/**
 * A vault's elements: the head, and the continuations one behind the other.
 *
 * @param continuation - place of the first continuation; the second follows it. Not read for a
 *   vault of one element
 * @throws MintmarkError `amount_out_of_range`; `batch_too_large` when no form holds the minting
 *   blob
 */
export function encodeElements(
  { assetIndex, owner, amount, blob }: ElementVault,
  continuation: number,
) {
  if (amount < 1n || amount > MAX_AMOUNT) throw new MintmarkError("amount_out_of_range");
  const { form, id } = formOf(amount, blob);
  const count = countOf(form, blob);
  if (count === 0)
    throw new MintmarkError(
      "batch_too_large",
      "no data blob holds a minting blob of that many bytes",
    );
  const head = new Uint8Array(ELEMENT_BYTES);
  head[0] = form;
  head[1] = assetIndex;
  head.set(owner, OWNER);
  if (form === Form.amount) writeNumber(amount, 8, head, PAYLOAD + 2);
  else if (form < Form.counted) writeNumber(id, 10, head, PAYLOAD);
  else if (form === Form.counted) writeNumber((amount << 40n) | id, 10, head, PAYLOAD);
  if (count === 1) return { head, rest: NO_ELEMENTS };
  const rest = new Uint8Array((count - 1) * ELEMENT_BYTES);
  for (let at = 0; at < rest.length; at += ELEMENT_BYTES) rest[at] = CONTINUATION;
  writeNumber(BigInt(continuation), 2, head, PAYLOAD);
  if (form < Form.bytes) {
    writeNumber(id >> LOW_BITS, 8, head, PAYLOAD + 2);
    writeNumber(id & ((1n << LOW_BITS) - 1n), CONTENT_BYTES, rest, 1);
    return { head, rest };
  }
  writeNumber(amount, 8, head, PAYLOAD + 2);
  rest[1] = blob.length;
  rest.set(blob.subarray(0, CONTENT_BYTES - 1), 2);
  rest.set(blob.subarray(CONTENT_BYTES - 1), count === 2 ? rest.length : ELEMENT_BYTES + 1);
  return { head, rest };
}

/**
 * The vault of a slot; null when the slot is void or its element is no vault's canonical form. Such
 * a slot pays nobody.
 *
 * @param elements - the whole batch, 32 bytes each
 * @param vaultCount - the slots. A continuation lies behind them
 */
export function readElements(
  elements: Uint8Array,
  slot: number,
  vaultCount: number,
): ElementVault | null {
  const head = elements.subarray(slot * ELEMENT_BYTES, (slot + 1) * ELEMENT_BYTES);
  const continuation = continuationOf(head);
  const room = Math.floor(elements.length / ELEMENT_BYTES) - (continuation ?? 0);
  if (continuation !== null && (continuation < vaultCount || room < 1)) return null;
  const rest = (continuation ?? 0) * ELEMENT_BYTES;
  const read = contentOf(head, elements.subarray(rest, rest + 2 * ELEMENT_BYTES));
  if (read === null || read.amount < 1n || read.amount > MAX_AMOUNT) return null;
  const vault = { assetIndex: head[1] as number, owner: head.slice(OWNER, PAYLOAD), ...read };
  const count = elementCount(vault.amount, vault.blob);
  if (count === 0 || (continuation !== null && room < count - 1)) return null;
  const again = encodeElements(vault, continuation ?? 0);
  const same =
    equalBytes(again.head, head) &&
    equalBytes(again.rest, elements.subarray(rest, rest + (count - 1) * ELEMENT_BYTES));
  return same && count > 1 === (continuation !== null) ? vault : null;
}

/** The place of the first continuation that a head names; null when its form has none. */
export function continuationOf(head: Uint8Array): number | null {
  const form = head[0] as number;
  return form >= Form.longNumber && form <= Form.bytes
    ? Number(readNumber(head, PAYLOAD, 2))
    : null;
}

/** The address of a vault that elements hold. */
export function ownerOf({ owner }: ElementVault): Address {
  return bytesToHex(owner);
}

function formOf(amount: bigint, blob: Uint8Array): { readonly form: number; readonly id: bigint } {
  if (blob.length === 0) return { form: Form.amount, id: 0n };
  const found = numberIn(blob);
  if (found === null) return { form: Form.bytes, id: 0n };
  const { spelling, id } = found;
  if (amount === 1n)
    return { form: (id < SHORT_NUMBER ? Form.number : Form.longNumber) + spelling, id };
  return {
    form: spelling === 0 && id < COUNTED && amount < COUNTED ? Form.counted : Form.bytes,
    id,
  };
}

/**
 * What a minting blob spells, in the order of the spellings: 32 digits are a decimal, not raw
 * bytes.
 */
function numberIn(blob: Uint8Array): { readonly spelling: number; readonly id: bigint } | null {
  const decimal = decimalTokenId(blob);
  if (decimal !== null) return { spelling: 0, id: decimal };
  const end = blob.length - NO_BLUEPRINT.length;
  if (blob[0] === OPEN && end > 1 && equalBytes(blob.subarray(end), NO_BLUEPRINT)) {
    const id = decimalTokenId(blob.subarray(1, end));
    if (id !== null) return { spelling: 1, id };
  }
  return blob.length === RAW_BYTES ? { spelling: 2, id: readNumber(blob, 0, RAW_BYTES) } : null;
}

/** What head and continuations say, canonical or not; null when the tag is none. */
function contentOf(
  head: Uint8Array,
  rest: Uint8Array,
): Pick<ElementVault, "amount" | "blob"> | null {
  const form = head[0] as number;
  if (form === Form.amount)
    return { amount: readNumber(head, PAYLOAD, 10), blob: new Uint8Array() };
  if (form >= Form.number && form < Form.counted) {
    return { amount: 1n, blob: spelled(form - Form.number, readNumber(head, PAYLOAD, 10)) };
  }
  if (form === Form.counted) {
    const payload = readNumber(head, PAYLOAD, 10);
    return { amount: payload >> 40n, blob: spelled(0, payload & (COUNTED - 1n)) };
  }
  if (form >= Form.longNumber && form < Form.bytes) {
    const high = readNumber(head, PAYLOAD + 2, 8);
    if (high > 0xffn) return null;
    return {
      amount: 1n,
      blob: spelled(
        form - Form.longNumber,
        (high << LOW_BITS) | readNumber(rest, 1, CONTENT_BYTES),
      ),
    };
  }
  if (form !== Form.bytes) return null;
  const length = rest[1] as number;
  const blob = new Uint8Array(length);
  const first = Math.min(length, CONTENT_BYTES - 1);
  blob.set(rest.subarray(2, 2 + first));
  blob.set(rest.subarray(ELEMENT_BYTES + 1, ELEMENT_BYTES + 1 + length - first), first);
  return { amount: readNumber(head, PAYLOAD + 2, 8), blob };
}

function spelled(spelling: number, id: bigint): Uint8Array {
  const text = blobTextOf(SPELLINGS[spelling] as (typeof SPELLINGS)[number], id.toString());
  return Uint8Array.from(text, (character) => character.charCodeAt(0));
}
