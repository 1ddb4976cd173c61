import type { FileHandle } from "node:fs/promises";

/** Most bytes of one read. */
const PIECE_BYTES = 64 * 1024;

/**
 * A file that is read while it is written. Its writer never waits for its reader, because a client
 * has only so much time to send all. What the reader is behind stays on disk, not in memory.
 */
export class GrowingFile {
  readonly #file: FileHandle;
  #written = 0;
  #end: { readonly error?: unknown } | null = null;
  #grown = Promise.withResolvers<void>();

  /** @param file - empty, and open for reading and writing */
  constructor(file: FileHandle) {
    this.#file = file;
  }

  async append(piece: Uint8Array): Promise<void> {
    await this.#file.appendFile(piece);
    this.#written += piece.length;
    this.#tell();
  }

  /** The reader ends after the bytes so far. */
  complete(): void {
    this.#end ??= {};
    this.#tell();
  }

  /** The reader ends at once, with this error. */
  fail(error: unknown): void {
    this.#end ??= { error };
    this.#tell();
  }

  /** All bytes, the later ones as they come. One reader at a time. */
  async *pieces(): AsyncGenerator<Uint8Array> {
    for (let read = 0; ; ) {
      if (this.#end !== null && "error" in this.#end) throw this.#end.error;
      if (read < this.#written) {
        const piece = Buffer.allocUnsafe(Math.min(PIECE_BYTES, this.#written - read));
        const { bytesRead } = await this.#file.read(piece, 0, piece.length, read);
        if (bytesRead === 0) throw new Error("the file has become shorter");
        read += bytesRead;
        yield piece.subarray(0, bytesRead);
      } else {
        if (this.#end !== null) return;
        await this.#grown.promise;
      }
    }
  }

  #tell(): void {
    this.#grown.resolve();
    this.#grown = Promise.withResolvers();
  }
}
