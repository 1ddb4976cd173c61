import { writeSync } from "node:fs";
import { type FileHandle, open, readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { crc32 } from "node:zlib";
import { MintmarkError } from "../errors.ts";

/** Length and checksum. */
const BYTES = 12;

/**
 * How many entries the journal has held, in a file of its own beside LevelDB's: `length(8) ‖ crc32(4)`, big-endian. It is written after
 * each write of the store and before that is acknowledged, so a journal that is shorter has lost entries. The file is not flushed to
 * disk each time, which would cost as much as the write itself: after a power cut it may name a smaller length, never a larger one.
 */
export class JournalMark {
  /** Entries; null when the folder has no mark. */
  readonly length: number | null;
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

  /** Removes the mark of a store whose writes another journal has. */
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
      const detail = `${path} is damaged, so nobody can tell whether the journal is whole. Restore the folder from a copy.`;
      throw new MintmarkError("store_corrupt", `${detail} To go on with the journal as it is, delete that file.`);
    }
    return new JournalMark(path, Number(bytes.readBigUInt64BE(0)));
  }

  /** Makes the file durable once, so that later marks only change bytes that are there. */
  async begin(length: number): Promise<void> {
    this.#file ??= await open(this.#path, this.length === null ? "w" : "r+", 0o600);
    this.set(length);
    await this.#file.sync();
  }

  /** A few microseconds: the bytes go to the system's cache. */
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
