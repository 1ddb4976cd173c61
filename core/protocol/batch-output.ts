import { writeHex } from "./hex.ts";

/** Appends the big-endian values of batch data. */
export class BatchOutput {
  readonly bytes: Uint8Array;
  #offset = 0;

  constructor(size: number) {
    this.bytes = new Uint8Array(size);
  }

  /** An unsigned integer below 2^32 in `size` bytes, 1 to 8. */
  uint(value: number, size: number): void {
    let rest = value;
    for (let at = this.#offset + size - 1; at >= this.#offset; at--) {
      this.bytes[at] = rest & 0xff;
      rest >>>= 8;
    }
    this.#offset += size;
  }

  biguint(value: bigint, size: number): void {
    if (size <= 4) {
      this.uint(Number(value), size);
      return;
    }
    this.uint(Number(value >> 32n), size - 4);
    this.uint(Number(value & 0xffff_ffffn), 4);
  }

  hex(hex: string, size: number): void {
    this.#offset = writeHex(hex, size, this.bytes, this.#offset);
  }

  /** An integer of two 32-bit words in `size` bytes, 1 to 8. */
  words(high: number, low: number, size: number): void {
    if (size > 4) this.uint(high, size - 4);
    this.uint(low, Math.min(size, 4));
  }

  slice(from: Uint8Array, start: number, end: number): void {
    for (let i = start; i < end; i++) this.bytes[this.#offset++] = from[i] as number;
  }

  /** Packs characters 0x30 to 0x3f, one nibble a character, right-aligned. */
  packedSlice(from: Uint8Array, start: number, end: number): void {
    let at = start;
    if ((end - start) % 2 === 1) this.bytes[this.#offset++] = (from[at++] as number) & 0x0f;
    for (; at < end; at += 2) {
      this.bytes[this.#offset++] = (((from[at] as number) & 0x0f) << 4) | ((from[at + 1] as number) & 0x0f);
    }
  }
}
