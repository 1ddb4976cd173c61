import { MintmarkError } from "../errors.ts";
import type { Hex } from "../model.ts";

/**
 * Writes binary records one after the other into one growing, reused buffer. Integers are big-endian; a varint is base
 * 128, low group first, top bit set on all bytes but the last.
 */
export class ByteWriter {
  #buffer: Buffer;
  #length = 0;

  constructor(capacity = 1024) {
    this.#buffer = Buffer.allocUnsafe(capacity);
  }

  get length(): number {
    return this.#length;
  }

  u8(value: number): void {
    const at = this.#grow(1);
    this.#buffer[at] = value;
  }

  u32(value: number): void {
    const at = this.#grow(4);
    this.#buffer.writeUInt32BE(value, at);
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

  /** The same, for a number of two 32-bit words. */
  varintWords(high: number, low: number): void {
    if (high < 0x20_0000) {
      this.varint(high * 2 ** 32 + low);
      return;
    }
    this.bigVarint((BigInt(high) << 32n) | BigInt(low));
  }

  /** A range of bytes. Blobs are short, so a loop is faster than a view. */
  slice(from: Uint8Array, start: number, end: number): void {
    let at = this.#grow(end - start);
    const buffer = this.#buffer;
    for (let i = start; i < end; i++) buffer[at++] = from[i] as number;
  }

  bytes(value: Uint8Array): void {
    const at = this.#grow(value.length);
    this.#buffer.set(value, at);
  }

  /** The bytes of a `0x` hex string, without their length. */
  hex(value: Hex): void {
    const bytes = (value.length - 2) / 2;
    const at = this.#grow(bytes);
    if (bytes > 0) this.#buffer.write(value.slice(2), at, bytes, "hex");
  }

  /** A copy of everything written from `start` on. */
  copy(start = 0): Buffer {
    const copy = Buffer.allocUnsafe(this.#length - start);
    this.#buffer.copy(copy, 0, start, this.#length);
    return copy;
  }

  /** A view of everything written from `start` on, valid until the next write. */
  view(start = 0): Buffer {
    return this.#buffer.subarray(start, this.#length);
  }

  /** Starts again in the same buffer. */
  reset(): void {
    this.#length = 0;
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

/**
 * Reads the output of {@link ByteWriter}. Throws `store_corrupt` for anything else, because it reads only the store's
 * own records.
 */
export class ByteReader {
  readonly #buffer: Buffer;
  #at: number;

  constructor(record: Uint8Array, start = 0) {
    this.#buffer = Buffer.from(record.buffer, record.byteOffset, record.byteLength);
    this.#at = start;
  }

  get position(): number {
    return this.#at;
  }

  get ended(): boolean {
    return this.#at === this.#buffer.length;
  }

  u8(): number {
    return this.#buffer[this.#take(1)] ?? 0;
  }

  u32(): number {
    return this.#buffer.readUInt32BE(this.#take(4));
  }

  u48(): number {
    return this.#buffer.readUIntBE(this.#take(6), 6);
  }

  u64(): bigint {
    return this.#buffer.readBigUInt64BE(this.#take(8));
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

  /** A view of the next bytes. */
  bytes(length: number): Buffer {
    const at = this.#take(length);
    return this.#buffer.subarray(at, at + length);
  }

  hex(length: number): Hex {
    return this.hexAt(this.#take(length), length);
  }

  /** Skips bytes; returns their position. */
  skip(length: number): number {
    return this.#take(length);
  }

  /** Bytes that have been skipped. */
  hexAt(at: number, length: number): Hex {
    return `0x${this.#buffer.toString("hex", at, at + length)}`;
  }

  /** Throws `store_corrupt` unless everything was read. */
  end(): void {
    if (!this.ended) throw corrupt(`${this.#buffer.length - this.#at} bytes too many`);
  }

  #take(length: number): number {
    const at = this.#at;
    if (at + length > this.#buffer.length) throw corrupt("it ends early");
    this.#at = at + length;
    return at;
  }
}

function corrupt(what: string): MintmarkError {
  return new MintmarkError("store_corrupt", `A stored record is damaged: ${what}. Restore the store from a copy.`);
}
