import { writeSync } from "node:fs";
import { type FileHandle, open, readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { crc32 } from "node:zlib";
import { MintmarkError } from "../errors.ts";

const BYTES = 12; // Length and checksum

/**
 * The number of journal entries, in a file next to LevelDB's: `length(8) ‖ crc32(4)`, big-endian. Written after each
 * write of the store and before its acknowledgement, so a shorter journal has lost entries. It is not flushed each
 * time, which would cost as much as the write. So after a power cut it can hold a smaller length, never a larger one.
 */
export class JournalMark {
  readonly length: number | null; // Entries; null when the folder has no mark
  readonly #path: string;
  readonly #bytes = Buffer.alloc(BYTES);
  #file: FileHandle | null = null;

  private constructor(path: string, length: number | null) {
    this.#path = path;
    this.length = length;
  }

  static pathIn(folder: string): string {
    return join(folder, "journal-length");
  }

  /** Removes the mark of a store whose writes another journal holds. */
  static async remove(folder: string): Promise<void> {
    await rm(JournalMark.pathIn(folder), { force: true });
  }

  /** Throws `store_corrupt` for a damaged mark. */
  static async read(folder: string): Promise<JournalMark> {
    const path = JournalMark.pathIn(folder);
    let bytes: Buffer;
    try {
      bytes = await readFile(path);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "ENOENT") return new JournalMark(path, null);
      throw error;
    }
    if (bytes.length !== BYTES || bytes.readUInt32BE(8) !== crc32(bytes.subarray(0, 8))) {
      const detail = `${path} is damaged, so nobody can tell whether the journal is complete. Restore the folder from a copy.`;
      throw new MintmarkError("store_corrupt", `${detail} To go on with the journal as it is, delete that file.`);
    }
    return new JournalMark(path, Number(bytes.readBigUInt64BE(0)));
  }

  /** Makes the file durable once; later marks change only existing bytes. */
  async begin(length: number): Promise<void> {
    this.#file ??= await open(this.#path, this.length === null ? "w" : "r+", 0o600);
    this.set(length);
    await this.#file.sync();
  }

  /** Takes a few microseconds: the bytes go to the system's cache. */
  set(length: number): void {
    if (this.#file === null) throw new Error("the mark is not open");
    this.#bytes.writeBigUInt64BE(BigInt(length), 0);
    this.#bytes.writeUInt32BE(crc32(this.#bytes.subarray(0, 8)), 8);
    writeSync(this.#file.fd, this.#bytes, 0, BYTES, 0);
  }

  async close(): Promise<void> {
    await this.#file?.close();
    this.#file = null;
  }
}
