import { writeSync } from "node:fs";
import {
  type FileHandle,
  mkdir,
  open,
  readdir,
  readFile,
  realpath,
  rm,
  stat,
} from "node:fs/promises";
import { createServer, type Server } from "node:net";
import { join } from "node:path";
import { crc32 } from "node:zlib";
import { MintmarkError } from "../errors.ts";
import {
  FORMAT_VERSION,
  ifThere,
  requireFolderFormat,
  requireNewest,
  writeFolderFormat,
} from "./format.ts";
import { LogHole, oldestLog, putKeys, readLog } from "./level-log.ts";
import { PREFIX } from "./store-keys.ts";

/** The files of LevelDB, and the journal's mark. The file of the format alone is no store. */
const STORE_FILE =
  /^(?:CURRENT|LOCK|LOG(?:\.old)?|MANIFEST-\d+|\d+\.(?:dbtmp|ldb|sst|log)|journal-length)$/;
const TABLE_FILE = /^\d+\.(?:ldb|sst)$/;
const LOG_FILE = /^\d+\.log$/;

function corrupt(detail: string, options?: { readonly cause: unknown }): MintmarkError {
  const advice = "Nothing in the folder was changed. Restore the whole folder from a copy.";
  return new MintmarkError("store_corrupt", `${detail} ${advice}`, options);
}

const MARK_BYTES = 12; // Length and checksum

/**
 * The folder of a LevelDB store, locked by this process and checked to be complete.
 *
 * Its mark is the number of journal entries, in a file next to LevelDB's: `length(8) ‖ crc32(4)`,
 * big-endian. It is written after each write of the store and before its acknowledgement, so a
 * shorter journal has lost entries. It is not flushed each time, which would cost as much as the
 * write. So after a power cut it can be smaller, never larger.
 */
export class LevelFolder implements AsyncDisposable {
  // The real path, because LevelDB's own lock within a process uses the folder's name
  readonly path: string;
  // Entries by the mark, when it was opened; null when the folder has none
  readonly marked: number | null;
  readonly #lock: Server | null;
  #format: number;
  readonly #bytes = Buffer.alloc(MARK_BYTES);
  #markFile: FileHandle | null = null;

  private constructor(path: string, marked: number | null, lock: Server | null, format: number) {
    this.path = path;
    this.marked = marked;
    this.#lock = lock;
    this.#format = format;
  }

  /**
   * Locks a folder and checks it for data that LevelDB would silently drop, before LevelDB changes
   * anything.
   *
   * @param createIfMissing - whether to create a store in a folder without one
   * @param keepsMark - false removes the mark, because another journal holds the store's writes
   * @throws MintmarkError `store_missing`, `store_locked`, `store_mismatch`, or `store_corrupt`
   */
  static async open(
    folder: string,
    createIfMissing: boolean,
    keepsMark: boolean,
  ): Promise<LevelFolder> {
    if (createIfMissing) await mkdir(folder, { recursive: true });
    else if (!(await stat(folder).catch(() => null))?.isDirectory()) throw storeMissing(folder);
    const path = await realpath(folder);
    const lock = await lockFolder(path);
    try {
      const holds = (await readdir(path)).some((file) => STORE_FILE.test(file));
      const format = holds ? await requireFolderFormat(path) : FORMAT_VERSION;
      // A store that begins a journal. A server's own folder is brought up by the journal.
      if (!keepsMark && !createIfMissing) requireNewest(format);
      if (!keepsMark) await rm(markIn(path), { force: true });
      // Reads the mark first: it is never ahead of the log, even while another process writes.
      const marked = await readMark(path);
      // A server of a cluster that ended before its first write left an empty store. The journal
      // fills it.
      const isStore = await requireWhole(path, !keepsMark && createIfMissing ? 0 : marked);
      if (!isStore && !createIfMissing) throw storeMissing(folder);
      if (!isStore) await writeFolderFormat(path);
      const opened = new LevelFolder(path, marked, lock, format);
      // Until the store has its first entry, the mark tells an interrupted creation from a damaged
      // store.
      if (!isStore) await opened.beginMark(0);
      return opened;
    } catch (error) {
      lock?.close();
      throw error;
    }
  }

  /** Makes earlier versions refuse the folder, before this version writes what they cannot read. */
  async raiseFormat(): Promise<void> {
    if (this.#format === FORMAT_VERSION) return;
    await writeFolderFormat(this.path);
    this.#format = FORMAT_VERSION;
  }

  /** Makes the mark's file durable once; later marks change only existing bytes. */
  async beginMark(length: number): Promise<void> {
    this.#markFile ??= await open(markIn(this.path), this.marked === null ? "w" : "r+", 0o600);
    this.mark(length);
    await this.#markFile.sync();
  }

  /** Takes a few microseconds: the bytes go to the system's cache. */
  mark(length: number): void {
    if (this.#markFile === null) throw new Error("the mark is not open");
    this.#bytes.writeBigUInt64BE(BigInt(length), 0);
    this.#bytes.writeUInt32BE(crc32(this.#bytes.subarray(0, 8)), 8);
    writeSync(this.#markFile.fd, this.#bytes, 0, MARK_BYTES, 0);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#markFile?.close();
    this.#markFile = null;
    this.#lock?.close();
  }
}

/**
 * A store is not created by default: over an emptied folder, a new one would mint the old one's
 * tokens again.
 */
export function storeMissing(folder: string): MintmarkError {
  return new MintmarkError(
    "store_missing",
    `There is no store in ${folder}. Create one with \`mintmark init\`, or open it with \`createIfMissing\`. ` +
      "If a store was there before, restore it from a copy.",
  );
}

/**
 * Whether a folder holds a store: not after an interrupted creation, which its mark of the
 * journal's length shows. Throws `store_corrupt` for a store without its CURRENT file, manifest,
 * log or acknowledged writes.
 */
async function requireWhole(folder: string, marked: number | null): Promise<boolean> {
  const files = await readdir(folder);
  const logs = files
    .filter((file) => LOG_FILE.test(file))
    .sort((a, b) => Number.parseInt(a, 10) - Number.parseInt(b, 10));
  const hasTables = files.some((file) => TABLE_FILE.test(file));
  const left = files.find((file) => STORE_FILE.test(file));
  if (left === undefined) return false;
  const length = await requireLogs(folder, logs);
  if (marked === 0 && length === null && !hasTables) return false;
  if (!files.includes("CURRENT"))
    throw corrupt(`${folder} holds ${left} of a store, but no CURRENT file.`);
  const manifest = (await readFile(join(folder, "CURRENT"), "utf8")).trim();
  if (!STORE_FILE.test(manifest) || !files.includes(manifest)) {
    throw corrupt(
      `${join(folder, "CURRENT")} names ${manifest === "" ? "no file" : "a file that is missing"}.`,
    );
  }
  if (logs.length === 0 || (length === null && !hasTables)) {
    const missing =
      logs.length === 0
        ? "no .log file: its newest writes are gone"
        : "a store without a single entry";
    throw corrupt(`${folder} holds ${missing}.`);
  }
  const oldest = oldestLog(await readFile(join(folder, manifest)));
  if (oldest !== null && !logs.some((log) => Number.parseInt(log, 10) === oldest)) {
    throw corrupt(
      `${join(folder, manifest)} names a log that is missing: the manifest is truncated, or the log is gone.`,
    );
  }
  if (marked !== null && length !== null && length < marked)
    throw entriesMissing(folder, length, marked);
  return true;
}

export function entriesMissing(folder: string, length: number, marked: number): MintmarkError {
  const detail = `The journal in ${folder} ends with entry ${length - 1}, but entries up to ${marked - 1} were acknowledged.`;
  const accept = `To continue without them, delete ${markIn(folder)}; their callers get no further notice.`;
  return new MintmarkError("store_corrupt", `${detail} Restore the folder from a copy. ${accept}`);
}

/** The journal's length by the logs; null when they hold no entry. */
async function requireLogs(folder: string, logs: readonly string[]): Promise<number | null> {
  let expected: bigint | undefined;
  let newest: Buffer | undefined;
  for (const log of logs) {
    try {
      for (const write of readLog(await readFile(join(folder, log)), expected)) {
        expected = write.next;
        for (const key of putKeys(write))
          if (key[0] === PREFIX.journal && key.length === 9) newest = key;
      }
    } catch (cause) {
      if (!(cause instanceof LogHole)) throw cause;
      throw corrupt(
        `Acknowledged writes are missing from ${join(folder, log)}: ${cause.message}.`,
        { cause },
      );
    }
  }
  return newest === undefined ? null : Number(newest.readBigUInt64BE(1)) + 1;
}

/**
 * LevelDB locks a file in the folder, which anyone can remove. A name in Linux's abstract namespace
 * ends with the process. The name is the folder's inode, so other paths to the folder have the same
 * one.
 */
async function lockFolder(path: string): Promise<Server | null> {
  if (process.platform !== "linux") return null;
  const { dev, ino } = await stat(path, { bigint: true });
  const lock = createServer((stranger) => stranger.destroy()).unref();
  await new Promise<void>((locked, refused) => {
    lock.once("error", (error: NodeJS.ErrnoException) => {
      refused(
        error.code === "EADDRINUSE"
          ? new MintmarkError("store_locked", undefined, { cause: error })
          : error,
      );
    });
    lock.listen({ path: `\0mintmark-store-${dev}-${ino}`, exclusive: true }, locked);
  });
  return lock;
}

function markIn(folder: string): string {
  return join(folder, "journal-length");
}

/** The length in a folder's mark; null without a mark. Throws `store_corrupt` for a damaged one. */
async function readMark(folder: string): Promise<number | null> {
  const path = markIn(folder);
  const bytes = await ifThere(readFile(path));
  if (bytes === undefined) return null;
  if (bytes.length !== MARK_BYTES || bytes.readUInt32BE(8) !== crc32(bytes.subarray(0, 8))) {
    const detail = `${path} is damaged, so nobody can tell whether the journal is complete. Restore the folder from a copy.`;
    throw new MintmarkError(
      "store_corrupt",
      `${detail} To go on with the journal as it is, delete that file.`,
    );
  }
  return Number(bytes.readBigUInt64BE(0));
}
