import { createHash, randomFillSync } from "node:crypto";
import { crc32 } from "node:zlib";
import { MintmarkError } from "../errors.ts";
import type { Hex, Uuid } from "../model.ts";
import { hexValue } from "../protocol/hex.ts";

export const RECORD_VERSION = 1; // First byte of every record of this version of the store
const UUID_BYTES = 16;
const DASH = 0x2d;

/**
 * Writes records into one growing buffer. Integers are big-endian; a varint is base 128, low group
 * first.
 */
export class ByteWriter {
  #buffer: Buffer;
  #length = 0;

  constructor(capacity = 1024) {
    this.#buffer = Buffer.allocUnsafe(capacity);
  }

  /** Starts a record in the same buffer, with its version. */
  begin(): this {
    this.#length = 0;
    this.u8(RECORD_VERSION);
    return this;
  }

  /** Ends the record with its checksum, `crc32(4)`, and returns a copy of it. */
  end(): Buffer {
    const at = this.#grow(4);
    this.#buffer.writeUInt32BE(crc32(this.#buffer.subarray(0, at)), at);
    const copy = Buffer.allocUnsafe(at + 4);
    this.#buffer.copy(copy, 0, 0, at + 4);
    return copy;
  }

  u8(value: number): void {
    const at = this.#grow(1);
    this.#buffer[at] = value;
  }

  /** A time in milliseconds, or any other whole number below 2^48. */
  u48(value: number): void {
    const at = this.#grow(6);
    this.#buffer.writeUIntBE(value, at, 6);
  }

  u64(value: bigint): void {
    const at = this.#grow(8);
    this.#buffer.writeBigUInt64BE(value, at);
  }

  /** 0 to 2^53 - 1; one byte below 128. */
  varint(value: number): void {
    let at = this.#grow(8);
    let rest = value;
    while (rest > 0x7f) {
      this.#buffer[at++] = 0x80 | (rest % 128);
      rest = Math.floor(rest / 128);
    }
    this.#buffer[at++] = rest;
    this.#length = at;
  }

  /** Any unsigned bigint. */
  bigVarint(value: bigint): void {
    let rest = value;
    while (rest > 0x7fn) {
      this.u8(0x80 | Number(rest & 0x7fn));
      rest >>= 7n;
    }
    this.u8(Number(rest));
  }

  /** Writes a 64-bit number that is given as two 32-bit words. */
  varintWords(high: number, low: number): void {
    if (high < 0x20_0000) {
      this.varint(high * 2 ** 32 + low);
      return;
    }
    this.bigVarint((BigInt(high) << 32n) | BigInt(low));
  }

  /** A range of bytes. Most are short, so a loop is faster than a view. */
  bytes(from: Uint8Array, start = 0, end = from.length): void {
    let at = this.#grow(end - start);
    const buffer = this.#buffer;
    for (let i = start; i < end; i++) buffer[at++] = from[i]!;
  }

  uuid(value: Uuid): void {
    const at = this.#grow(UUID_BYTES);
    putUuid(this.#buffer, at, value);
  }

  /** The bytes of a `0x` hex string, without their length. */
  hex(value: Hex): void {
    const bytes = (value.length - 2) / 2;
    const at = this.#grow(bytes);
    if (bytes > 0) this.#buffer.write(value.slice(2), at, bytes, "hex");
  }

  #grow(bytes: number): number {
    const at = this.#length;
    if (at + bytes > this.#buffer.length) {
      const larger = Buffer.allocUnsafe(Math.max(2 * this.#buffer.length, at + bytes));
      this.#buffer.copy(larger, 0, 0, at);
      this.#buffer = larger;
    }
    this.#length = at + bytes;
    return at;
  }
}

export const record = new ByteWriter(1 << 16);

/**
 * Reads the output of {@link ByteWriter}, the store's own records. Throws `store_corrupt` for
 * anything else.
 */
export class ByteReader {
  readonly #buffer: Buffer;
  #at: number;

  constructor(record: Uint8Array, start = 0) {
    this.#buffer = Buffer.from(record.buffer, record.byteOffset, record.byteLength);
    this.#at = start;
  }

  get ended(): boolean {
    return this.#at === this.#buffer.length;
  }

  u8(): number {
    return this.#buffer[this.skip(1)] ?? 0;
  }

  u48(): number {
    return this.#buffer.readUIntBE(this.skip(6), 6);
  }

  u64(): bigint {
    return this.#buffer.readBigUInt64BE(this.skip(8));
  }

  varint(): number {
    let value = 0;
    for (let scale = 1; ; scale *= 128) {
      const byte = this.u8();
      value += (byte & 0x7f) * scale;
      if (byte < 0x80) break;
    }
    if (value > Number.MAX_SAFE_INTEGER) throw corrupt("a number above 2^53");
    return value;
  }

  bigVarint(): bigint {
    // Most are small: a number up to 2^49 avoids a bigint per byte.
    let small = 0;
    for (let scale = 1; scale < 2 ** 49; scale *= 128) {
      const byte = this.u8();
      small += (byte & 0x7f) * scale;
      if (byte < 0x80) return BigInt(small);
    }
    let value = BigInt(small);
    for (let shift = 49n; ; shift += 7n) {
      const byte = this.u8();
      value |= BigInt(byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
  }

  bytes(length: number): Buffer {
    const at = this.skip(length);
    return this.#buffer.subarray(at, at + length);
  }

  uuid(): Uuid {
    return uuidText(this.bytes(UUID_BYTES));
  }

  hex(length: number): Hex {
    return this.hexAt(this.skip(length), length);
  }

  /** Skips bytes; returns their position. */
  skip(length: number): number {
    const at = this.#at;
    if (at + length > this.#buffer.length) throw corrupt("it ends early");
    this.#at = at + length;
    return at;
  }

  /** Bytes that have been skipped. */
  hexAt(at: number, length: number): Hex {
    return `0x${this.#buffer.toString("hex", at, at + length)}`;
  }

  /** Throws `store_corrupt` unless everything was read. */
  end(): void {
    if (!this.ended) throw corrupt(`${this.#buffer.length - this.#at} bytes too many`);
  }
}

function corrupt(what: string): MintmarkError {
  return new MintmarkError(
    "store_corrupt",
    `A stored record is damaged: ${what}. Restore the store from a copy.`,
  );
}

/**
 * Writes the 16 bytes of a UUID in the usual form into a buffer, and returns that. Does not check
 * it.
 */
export function putUuid(into: Buffer, start: number, value: Uuid): Buffer {
  for (let at = start, i = 0; at < start + UUID_BYTES; at++, i += 2) {
    if (value.charCodeAt(i) === DASH) i++;
    into[at] = (hexValue(value.charCodeAt(i)) << 4) | hexValue(value.charCodeAt(i + 1));
  }
  return into;
}

const HEX_DIGITS = Buffer.from("0123456789abcdef", "latin1");
const uuidScratch = Buffer.alloc(36, DASH);

export function uuidText(bytes: Uint8Array): Uuid {
  for (let i = 0, at = 0; i < UUID_BYTES; i++) {
    const byte = bytes[i]!;
    if (at === 8 || at === 13 || at === 18 || at === 23) at++;
    uuidScratch[at++] = HEX_DIGITS[byte >> 4]!;
    uuidScratch[at++] = HEX_DIGITS[byte & 15]!;
  }
  return uuidScratch.toString("latin1");
}

// Random bytes drawn at a time, because a draw costs much more than its bytes
const POOL_BYTES = 4096;
const randomPool = Buffer.alloc(POOL_BYTES);
let used = POOL_BYTES;
const newUuid = Buffer.alloc(UUID_BYTES);

/**
 * A UUID of version 7 (RFC 9562): ms since 1970, then 74 random bits. So neighbours in time are
 * stored together.
 */
export function timeUuid(now: number): Uuid {
  if (used + 10 > POOL_BYTES) {
    randomFillSync(randomPool);
    used = 0;
  }
  newUuid.writeUIntBE(now, 0, 6);
  for (let i = 6; i < 16; i++) newUuid[i] = randomPool[used++]!;
  newUuid[6] = 0x70 | (newUuid[6]! & 0x0f);
  newUuid[8] = 0x80 | (newUuid[8]! & 0x3f);
  return uuidText(newUuid);
}

export function hashUuid(text: string): Uuid {
  const bytes = createHash("sha256").update(text).digest().subarray(0, UUID_BYTES);
  bytes.writeUInt8((bytes.readUInt8(6) & 0x0f) | 0x80, 6);
  bytes.writeUInt8((bytes.readUInt8(8) & 0x3f) | 0x80, 8);
  return uuidText(bytes);
}
