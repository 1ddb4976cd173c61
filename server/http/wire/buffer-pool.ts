/** Smaller buffers are cheap to allocate anew. */
const LEAST_BYTES = 64 * 1024;
/** Most bytes of all kept buffers. */
const MOST_KEPT_BYTES = 32 * 1024 * 1024;

/**
 * Reuses large buffers. V8 also counts external memory, and starts a full collection after some 64 MB of it: with a new
 * buffer for each large response, after every fiftieth.
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
