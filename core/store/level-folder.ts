import { writeSync } from "node:fs";
import { type FileHandle, mkdir, open, readdir, readFile, realpath, stat } from "node:fs/promises";
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
import { LogHole, putKeys, readLog, readManifest } from "./level-log.ts";
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
 * The purpose of opening a folder: an engine's store, a copy of a journal, a server's store in a
 * cluster (the cluster's journal has its writes), or a store that is only read.
 */
export type FolderUse = "store" | "journal" | "replica" | "source";

/** Whether the folder's own mark tells which writes were acknowledged. */
export function keepsMark(use: FolderUse): boolean {
  return use === "store" || use === "journal";
}

/**
 * The folder of a LevelDB store, claimed by this process and checked to be complete.
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
  readonly #name: Server | null;
  #format: number;
  readonly #bytes = Buffer.alloc(MARK_BYTES);
  #markFile: FileHandle | null = null;

  private constructor(path: string, marked: number | null, name: Server | null, format: number) {
    this.path = path;
    this.marked = marked;
    this.#name = name;
    this.#format = format;
  }

  /**
   * Checks a folder for what does not fit its use, and for data that LevelDB would silently drop,
   * before LevelDB changes anything. It stays this process's until it is disposed.
   *
   * @param createIfMissing - whether to create a store in a folder without one
   * @throws MintmarkError `store_missing`, `store_locked`, `store_mismatch`, or `store_corrupt`
   */
  static async open(
    folder: string,
    createIfMissing: boolean,
    use: FolderUse,
  ): Promise<LevelFolder> {
    if (createIfMissing) await mkdir(folder, { recursive: true });
    else if (!(await stat(folder).catch(() => null))?.isDirectory()) throw storeMissing(folder);
    const path = await realpath(folder);
    const name = await claimFolder(path);
    try {
      const holds = await holdsStore(path);
      const format = holds ? await requireFolderFormat(path) : FORMAT_VERSION;
      // A store that begins a journal. A server's own folder is brought up by the journal.
      if (use === "source") requireNewest(format);
      // Reads the mark first: it is never ahead of the log, even while another process writes.
      const marked = await readMark(path);
      if (use === "replica" && marked !== null && marked > 0) throw notOfCluster(folder);
      // A server of a cluster that ended before its first write left an empty store. The journal
      // fills it.
      const isStore = await requireWhole(path, use, use === "replica" ? 0 : marked);
      if (!isStore && !createIfMissing) throw storeMissing(folder);
      if (!isStore) await writeFolderFormat(path);
      const opened = new LevelFolder(path, marked, name, format);
      // Until the store has its first entry, the mark tells an interrupted creation from a damaged
      // store.
      if (!isStore && keepsMark(use)) await opened.beginMark(0);
      return opened;
    } catch (error) {
      name?.close();
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
    this.#name?.close();
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

/** Whether a folder has any file of a store, whole or not. */
export async function holdsStore(folder: string): Promise<boolean> {
  const files = (await ifThere(readdir(folder))) ?? [];
  return files.some((file) => STORE_FILE.test(file));
}

export function notOfCluster(folder: string): MintmarkError {
  const detail = `The store in ${folder} did not come from the cluster's journal. Nothing was changed.`;
  const advice = "Give each server of a cluster an empty folder.";
  return new MintmarkError("store_mismatch", `${detail} ${advice}`);
}

/**
 * Whether a folder holds a store: not after an interrupted creation, which its mark of the
 * journal's length shows. Throws `store_corrupt` for a store without its CURRENT file, manifest,
 * log or acknowledged writes, and `store_mismatch` for an engine's store in place of a journal.
 */
async function requireWhole(
  folder: string,
  use: FolderUse,
  marked: number | null,
): Promise<boolean> {
  const files = await readdir(folder);
  const logs = files
    .filter((file) => LOG_FILE.test(file))
    .sort((a, b) => Number.parseInt(a, 10) - Number.parseInt(b, 10));
  const hasTables = files.some((file) => TABLE_FILE.test(file));
  const left = files.find((file) => STORE_FILE.test(file));
  if (left === undefined) return false;
  const { length, isJournal } = await readLogs(folder, logs);
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
  const { oldestLog, tableKeys } = readManifest(await readFile(join(folder, manifest)));
  if (oldestLog !== null && !logs.some((log) => Number.parseInt(log, 10) === oldestLog)) {
    throw corrupt(
      `${join(folder, manifest)} names a log that is missing: the manifest is truncated, or the log is gone.`,
    );
  }
  if (marked !== null && length !== null && length < marked)
    throw entriesMissing(folder, length, marked);
  if (use === "journal" && !(isJournal && tableKeys.every(isOfJournal))) throw notAJournal(folder);
  return true;
}

export function entriesMissing(folder: string, length: number, marked: number): MintmarkError {
  const detail = `The journal in ${folder} ends with entry ${length - 1}, but entries up to ${marked - 1} were acknowledged.`;
  const advice = "Restore the folder from a newer copy, or from the newest backup.";
  return new MintmarkError("store_corrupt", `${detail} Nothing was changed. ${advice}`);
}

export function notAJournal(place: string): MintmarkError {
  const detail = `${place} holds a store, where a backup must hold a journal alone. Nothing was changed.`;
  return new MintmarkError("store_mismatch", `${detail} Name another folder.`);
}

function isOfJournal(key: Buffer): boolean {
  return key[0] === PREFIX.journal;
}

/** The journal's length by the logs, null without an entry, and whether they hold nothing else. */
async function readLogs(folder: string, logs: readonly string[]) {
  let expected: bigint | undefined;
  let newest: Buffer | undefined;
  let isJournal = true;
  for (const log of logs) {
    try {
      for (const write of readLog(await readFile(join(folder, log)), expected)) {
        expected = write.next;
        for (const key of putKeys(write)) {
          if (isOfJournal(key) && key.length === 9) newest = key;
          else isJournal = false;
        }
      }
    } catch (cause) {
      if (!(cause instanceof LogHole)) throw cause;
      throw corrupt(
        `Acknowledged writes are missing from ${join(folder, log)}: ${cause.message}.`,
        { cause },
      );
    }
  }
  const length = newest === undefined ? null : Number(newest.readBigUInt64BE(1)) + 1;
  return { length, isJournal };
}

/**
 * Refuses a second process while the first one runs, without LevelDB's LOCK file, which anyone can
 * remove. A name in Linux's abstract namespace ends with the process, and counts within its network
 * namespace. The name is the folder's inode, so other paths to the folder have the same one.
 */
async function claimFolder(path: string): Promise<Server | null> {
  if (process.platform !== "linux") return null;
  const { dev, ino } = await stat(path, { bigint: true });
  const name = createServer((stranger) => stranger.destroy()).unref();
  await new Promise<void>((claimed, refused) => {
    name.once("error", (error: NodeJS.ErrnoException) => {
      refused(
        error.code === "EADDRINUSE"
          ? new MintmarkError("store_locked", undefined, { cause: error })
          : error,
      );
    });
    name.listen({ path: `\0mintmark-store-${dev}-${ino}`, exclusive: true }, claimed);
  });
  return name;
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
    throw corrupt(`${path} is damaged, so nobody can tell whether the journal is complete.`);
  }
  return Number(bytes.readBigUInt64BE(0));
}
