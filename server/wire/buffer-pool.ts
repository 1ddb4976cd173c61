/** Smaller ones are cheap to make, and are made anew. */
const LEAST_BYTES = 64 * 1024;
/** What is kept for later, all of it together. */
const MOST_KEPT_BYTES = 32 * 1024 * 1024;

/**
 * Large buffers that are used again. What V8 does not allocate itself it counts all the same, and starts a full collection after some
 * 64 MB of it: with a new buffer for each large answer that is every fiftieth answer.
 */
export class BufferPool {
  readonly #free: Buffer[] = [];
  #freeBytes = 0;

  /** A buffer of at least so many bytes, with anything in it. */
  take(bytes: number): Buffer {
    if (bytes < LEAST_BYTES) return Buffer.allocUnsafe(bytes);
    const at = this.#free.findIndex(({ length }) => length >= bytes);
    if (at < 0) return Buffer.allocUnsafeSlow(2 ** Math.ceil(Math.log2(bytes)));
    const [buffer = Buffer.alloc(0)] = this.#free.splice(at, 1);
    this.#freeBytes -= buffer.length;
    return buffer;
  }

  /** Takes back a buffer that nobody looks at any more. */
  give(buffer: Buffer): void {
    if (buffer.length < LEAST_BYTES || this.#freeBytes + buffer.length > MOST_KEPT_BYTES) return;
    this.#free.push(buffer);
    this.#freeBytes += buffer.length;
  }
}
