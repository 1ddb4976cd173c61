import { bytesToHex as bareHex } from "@noble/hashes/utils.js";
import { invalid, type MintmarkError } from "../errors.ts";
import type { Address, Hash, Hex } from "../model.ts";
import { createKeccak } from "./keccak/index.ts";

/** Bytes as hex, as numbers and one behind the other, and their hash. */

/** Bytes of a hash, a tree node or a storage word. */
export const HASH_BYTES = 32;

/**
 * Nobody's address. The core has its own, as it has its own checksum, because viem takes longer to
 * load than all of the engine.
 */
export const ZERO_ADDRESS: Address = `0x${"0".repeat(40)}`;

/**
 * `0x` and lower-case hex of `bytes`.
 *
 * @example
 * bytesToHex(new TextEncoder().encode("17")); // "0x3137"
 */
export function bytesToHex(bytes: Uint8Array): Hex {
  return `0x${bareHex(bytes)}`;
}

/**
 * The bytes of a `0x` hex string, in any case.
 *
 * @param length - the number of bytes it must have; any when left out
 * @throws MintmarkError `validation_failed` when it is not hex or not of that length
 *
 * @example
 * const root = hexToBytes(batchRoot, 32);
 */
export function hexToBytes(hex: string, length?: number): Uint8Array {
  const bytes = new Uint8Array(Math.max(0, (hex.length - 2) >> 1));
  if (!fill(hex, bytes, 0)) {
    throw invalid(`not 0x hex of whole bytes: ${excerpt(hex)}`);
  }
  if (length !== undefined && bytes.length !== length) {
    throw notHexOf(length, hex);
  }
  return bytes;
}

/** Packs 32-byte hashes one after the other. Throws `validation_failed` for anything else. */
export function packHashes(hashes: readonly Hash[]): Uint8Array {
  const packed = new Uint8Array(hashes.length * HASH_BYTES);
  for (const [i, hash] of hashes.entries())
    packed.set(hexToBytes(hash, HASH_BYTES), i * HASH_BYTES);
  return packed;
}

/** The inverse of {@link packHashes}. */
export function unpackHashes(packed: Uint8Array): Hash[] {
  return Array.from({ length: packed.length / HASH_BYTES }, (_, i) =>
    bytesToHex(hashAt(packed, i)),
  );
}

/** A view of the hash at `index` of packed hashes. */
export function hashAt(packed: Uint8Array, index: number): Uint8Array {
  return packed.subarray(index * HASH_BYTES, (index + 1) * HASH_BYTES);
}

/** Whether two byte strings are equal. Not constant-time: all values compared here are public. */
export function equalBytes(a: Uint8Array, b: Uint8Array): boolean {
  if (a.length !== b.length) return false;
  for (let i = 0; i < a.length; i++) if (a[i] !== b[i]) return false;
  return true;
}

function notHexOf(length: number, hex: string): MintmarkError {
  return invalid(`expected 0x hex of ${length} bytes, got ${excerpt(hex)}`);
}

function excerpt(text: string): string {
  return JSON.stringify(text.length > 80 ? `${text.slice(0, 80)}…` : text);
}

/**
 * Writes the bytes of a `0x` hex string into a buffer. Creates no array, because leaves and batch
 * data are a hot path.
 *
 * @returns the offset after the last byte written
 * @throws MintmarkError `validation_failed` when it is not hex, or not of `length` bytes
 */
export function writeHex(hex: string, length: number, into: Uint8Array, offset: number): number {
  if (hex.length !== 2 + 2 * length || !fill(hex, into, offset)) throw notHexOf(length, hex);
  return offset + length;
}

/** Hex, bytes, or an unsigned integer, which is written big-endian. */
export type PackedValue = number | bigint | Hex | Uint8Array;

/**
 * The values one behind the other. Their sizes in bytes repeat when there are more values. Throws
 * `validation_failed` for hex of another size.
 */
export function packed(sizes: readonly number[], ...values: readonly PackedValue[]): Uint8Array {
  const sizeOf = (i: number) => sizes[i % sizes.length]!;
  const bytes = new Uint8Array(values.reduce<number>((sum, _, i) => sum + sizeOf(i), 0));
  let at = 0;
  for (const [i, value] of values.entries()) {
    if (typeof value === "string") writeHex(value, sizeOf(i), bytes, at);
    else if (value instanceof Uint8Array) bytes.set(value, at);
    else writeNumber(BigInt(value), sizeOf(i), bytes, at);
    at += sizeOf(i);
  }
  return bytes;
}

/**
 * The protocol's only hash. The rest of the core imports it from here, so one module decides the
 * implementation.
 */
const shared = createKeccak();

export const { hashPairs, hashMessages, foldPath } = shared;

/**
 * keccak-256 of a message of any length; a new array of 32 bytes.
 *
 * @example
 * const dataHash = bytesToHex(keccak256(data));
 */
export function keccak256(message: Uint8Array): Uint8Array<ArrayBuffer> {
  return shared.keccak256(message);
}

export function textHash(text: string): Uint8Array {
  return keccak256(new TextEncoder().encode(text));
}

/** The hash of {@link packed} values. */
export function hashOf(sizes: readonly number[], ...values: readonly PackedValue[]): Hash {
  return bytesToHex(keccak256(packed(sizes, ...values)));
}

/** An integer as a storage word. */
export function wordOf(value: number | bigint): Hash {
  return bytesToHex(packed([HASH_BYTES], value));
}

export function readNumber(bytes: Uint8Array, at: number, length: number): bigint {
  let value = 0n;
  for (let i = at; i < at + length; i++) value = (value << 8n) | BigInt(bytes[i]!);
  return value;
}

export function writeNumber(value: bigint, length: number, into: Uint8Array, at: number): void {
  let left = value;
  for (let i = at + length - 1; i >= at; i--) {
    into[i] = Number(left & 0xffn);
    left >>= 8n;
  }
}

/** Writes the bytes of `0x` hex; false when the text is not hex. */
function fill(hex: string, into: Uint8Array, offset: number): boolean {
  if (hex.length % 2 !== 0 || !hex.startsWith("0x")) return false;
  for (let i = 2, at = offset; i < hex.length; i += 2, at++) {
    const byte = (NIBBLES[hex.charCodeAt(i)]! << 4) | NIBBLES[hex.charCodeAt(i + 1)]!;
    if (byte < 0) return false;
    into[at] = byte;
  }
  return true;
}

/** The value of a hex digit by its UTF-16 code, -1 for any other character. */
export function hexValue(code: number): number {
  return NIBBLES[code]!;
}

/**
 * Indexed by UTF-16 code: -1 unless it is a hex character. All codes have an entry, so no lookup
 * misses.
 */
const NIBBLES = new Int8Array(0x10000).fill(-1);
for (const [value, digit] of [..."0123456789abcdef"].entries()) {
  NIBBLES[digit.charCodeAt(0)] = value;
  NIBBLES[digit.toUpperCase().charCodeAt(0)] = value;
}
