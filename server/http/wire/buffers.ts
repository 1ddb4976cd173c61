/** Smaller buffers are cheap to allocate anew. */
const LEAST_BYTES = 64 * 1024;
/** Most bytes of all kept buffers. */
const MOST_KEPT_BYTES = 32 * 1024 * 1024;

/**
 * Reuses large buffers. V8 also counts external memory, and starts a full collection after some 64
 * MB of it: with a new buffer for each large response, after every fiftieth.
 */
export class BufferPool {
  readonly #free: Buffer[] = [];
  #freeBytes = 0;

  /** A buffer of at least `bytes`, with any content. */
  take(bytes: number): Buffer {
    if (bytes < LEAST_BYTES) return Buffer.allocUnsafe(bytes);
    const at = this.#free.findIndex(({ length }) => length >= bytes);
    if (at < 0) return Buffer.allocUnsafeSlow(2 ** Math.ceil(Math.log2(bytes)));
    const [buffer = Buffer.alloc(0)] = this.#free.splice(at, 1);
    this.#freeBytes -= buffer.length;
    return buffer;
  }

  give(buffer: Buffer): void {
    if (buffer.length < LEAST_BYTES || this.#freeBytes + buffer.length > MOST_KEPT_BYTES) return;
    this.#free.push(buffer);
    this.#freeBytes += buffer.length;
  }
}

const ZERO = 0x30;
const BILLION = 1e9;
const HEX_DIGITS = Buffer.from("0123456789abcdef", "latin1");

/** Writes ASCII bytes directly, without a string: for responses made mostly of bytes or numbers. */
export class AsciiWriter {
  readonly #buffers: BufferPool;
  #buffer: Buffer;
  #at = 0;

  constructor(buffers: BufferPool, expectedBytes: number) {
    this.#buffers = buffers;
    this.#buffer = buffers.take(expectedBytes);
  }

  /** Makes space for `bytes` more; the other methods do not check. */
  reserve(bytes: number): void {
    if (this.#at + bytes <= this.#buffer.length) return;
    const wider = this.#buffers.take(2 * this.#buffer.length + bytes);
    this.#buffer.copy(wider, 0, 0, this.#at);
    this.release();
    this.#buffer = wider;
  }

  bytes(piece: Uint8Array): void {
    this.#buffer.set(piece, this.#at);
    this.#at += piece.length;
  }

  text(piece: string): void {
    this.#at += this.#buffer.write(piece, this.#at, "latin1");
  }

  /** Any text, with the space for it. */
  utf8(piece: string): void {
    this.reserve(Buffer.byteLength(piece));
    this.#at += this.#buffer.write(piece, this.#at, "utf8");
  }

  slice(from: Uint8Array, start: number, end: number): void {
    for (let i = start; i < end; i++) this.#buffer[this.#at++] = from[i] as number;
  }

  hex(from: Uint8Array, start: number, end: number): void {
    for (let i = start; i < end; i++) {
      const byte = from[i] as number;
      this.#buffer[this.#at++] = HEX_DIGITS[byte >> 4] as number;
      this.#buffer[this.#at++] = HEX_DIGITS[byte & 15] as number;
    }
  }

  /** A whole number from 0 to 2^53 - 1 in decimal digits. */
  decimal(value: number): void {
    if (value >= BILLION) {
      const high = Math.floor(value / BILLION);
      this.decimal(high);
      this.#digits(value - high * BILLION, 9);
      return;
    }
    let length = 1;
    for (let bound = 10; value >= bound; bound *= 10) length += 1;
    this.#digits(value, length);
  }

  /** The last digits of a number below 2^31, with leading zeros. */
  #digits(value: number, length: number): void {
    const buffer = this.#buffer;
    let rest = value;
    for (let i = this.#at + length - 1; i >= this.#at; i--) {
      const tens = (rest / 10) | 0;
      buffer[i] = ZERO + rest - 10 * tens;
      rest = tens;
    }
    this.#at += length;
  }

  /** A view of everything written, valid until `release`. */
  written(): Buffer {
    return this.#buffer.subarray(0, this.#at);
  }

  /** Returns the buffer to the pool. The view must no longer be in use. */
  release(): void {
    this.#buffers.give(this.#buffer);
  }
}
