import type { Hex } from "../model.ts";
import { BatchDataError, type BatchDataReason } from "./batch-data.ts";
import { bytesToHex } from "./hex.ts";

/** Reads the big-endian values of batch data from the front, and refuses to go past the end. */
export class BatchInput {
  offset = 0;
  readonly #data: Uint8Array;

  constructor(data: Uint8Array) {
    this.#data = data;
  }

  get atEnd(): boolean {
    return this.offset === this.#data.length;
  }

  /** The refusal of something that was just read and was `size` bytes long. */
  refusal(reason: BatchDataReason, size = 0): BatchDataError {
    return new BatchDataError(reason, this.offset - size);
  }

  require(size: number): void {
    if (this.offset + size > this.#data.length) throw this.refusal("truncated");
  }

  uint8(): number {
    this.require(1);
    return this.#byte();
  }

  uint16(): number {
    this.require(2);
    return this.#byte() * 0x100 + this.#byte();
  }

  uint24(): number {
    this.require(3);
    return this.#byte() * 0x10000 + this.#byte() * 0x100 + this.#byte();
  }

  /** An integer of 1 to 8 bytes. */
  uint(size: number): bigint {
    this.require(size);
    let high = 0;
    for (let i = 4; i < size; i++) high = high * 0x100 + this.#byte();
    let low = 0;
    for (let i = 0; i < Math.min(size, 4); i++) low = low * 0x100 + this.#byte();
    return high === 0 ? BigInt(low) : (BigInt(high) << 32n) | BigInt(low);
  }

  hex(size: number): Hex {
    this.require(size);
    this.offset += size;
    return bytesToHex(this.#data.subarray(this.offset - size, this.offset));
  }

  /** The nibble `index` nibbles ahead, most significant first. */
  peekNibble(index: number): number {
    const byte = this.#data[this.offset + (index >> 1)] ?? 0;
    return index % 2 === 0 ? byte >> 4 : byte & 0x0f;
  }

  #byte(): number {
    return this.#data[this.offset++] ?? 0;
  }
}
