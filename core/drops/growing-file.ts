import { open } from "node:fs/promises";

/** Most bytes of one read. */
const PIECE_BYTES = 64 * 1024;

/**
 * A file that is read while somebody else writes it. Its writer never waits for its reader, because
 * a client has only so much time to send all. What the reader is behind stays on disk, not in
 * memory.
 */
export class GrowingFile {
  readonly #path: string;
  #written = 0;
  #isComplete = false;
  #grown = Promise.withResolvers<void>();

  constructor(path: string) {
    this.#path = path;
  }

  /** So many bytes are written, from the first on. */
  grow(written: number): void {
    this.#written = written;
    this.#tell();
  }

  /** The reader ends after the bytes so far. */
  complete(): void {
    this.#isComplete = true;
    this.#tell();
  }

  /** All bytes, the later ones as they come. One reader at a time. */
  async *pieces(): AsyncGenerator<Uint8Array> {
    await using file = await open(this.#path);
    for (let read = 0; ; ) {
      if (read < this.#written) {
        const piece = Buffer.allocUnsafe(Math.min(PIECE_BYTES, this.#written - read));
        const { bytesRead } = await file.read(piece, 0, piece.length, read);
        if (bytesRead === 0) throw new Error("the file has become shorter");
        read += bytesRead;
        yield piece.subarray(0, bytesRead);
      } else {
        if (this.#isComplete) return;
        await this.#grown.promise;
      }
    }
  }

  #tell(): void {
    this.#grown.resolve();
    this.#grown = Promise.withResolvers();
  }
}
