import { open, readFile, rename } from "node:fs/promises";
import { join } from "node:path";
import packageJson from "../../package.json" with { type: "json" };
import { MintmarkError } from "../errors.ts";
import type { Store, StoreOperation, StoreReader } from "./ports.ts";
import { FORMAT_KEY } from "./store-keys.ts";

/** Every change of a persisted byte raises it; test/core/engine/format.test.ts notices one. */
export const FORMAT_VERSION = 11;

/**
 * The writes that bring records from one format to the next, all in memory at once. They never
 * touch the journal.
 */
type Step = (store: StoreReader) => Promise<readonly StoreOperation[]>;

/**
 * Each step has the format that it begins with as key. A version that raises {@link FORMAT_VERSION}
 * adds one.
 */
const STEPS: Readonly<Record<number, Step>> = {};

/**
 * Throws `store_mismatch` for a format that this version does not have, and cannot bring up to its
 * own.
 */
export function requireFormat(
  name: string,
  format: number,
  writtenBy = "that wrote it",
  kept = "Nothing was changed.",
): void {
  let reached = format;
  while (STEPS[reached] !== undefined) reached++;
  if (reached === FORMAT_VERSION) return;
  const detail = `${name} has format ${format}, and this version of Mintmark reads format ${FORMAT_VERSION}.`;
  throw new MintmarkError("store_mismatch", `${detail} ${kept} Use the version ${writtenBy}.`);
}

const FILE = "FORMAT";
/** `mintmark store <format> by <version of Mintmark>`, and a line feed. */
const LINE = /^mintmark store (\d{1,9}) by (\S{1,64})\n$/;

/**
 * The format of a store's records. Throws `store_mismatch` for one that this version cannot read.
 */
export async function formatOf(store: StoreReader, genesisFormat: number): Promise<number> {
  const record = await store.get(FORMAT_KEY);
  if (record !== undefined) return requireRecord(record);
  requireFormat("The store", genesisFormat);
  return genesisFormat;
}

/**
 * The format in a {@link formatRecord}. Throws `store_mismatch` for one that this version cannot
 * read.
 */
export function requireRecord(record: Uint8Array, name = "The store", kept?: string): number {
  const [format, version] = parts(Buffer.from(record).toString("latin1"), `${name} holds`);
  requireFormat(name, format, version, kept);
  return format;
}

/** Throws `store_mismatch` for a store that a journal cannot begin with. */
export function requireNewest(format: number): void {
  if (format === FORMAT_VERSION) return;
  const detail = `The store has format ${format}, and a journal of this version begins with format ${FORMAT_VERSION}.`;
  const advice = "Open the store alone with this version first, or use the version that wrote it.";
  throw new MintmarkError("store_mismatch", `${detail} Nothing was changed. ${advice}`);
}

/** The record that tells a store's format when the genesis does not. */
export function formatRecord(format: number): StoreOperation {
  return { type: "put", key: FORMAT_KEY, value: Buffer.from(lineOf(format), "latin1") };
}

/**
 * Brings records up to this version's format, one atomic write a step; after a crash it goes on.
 * First `raiseFile` writes the folder's file, so that no earlier version opens what a step has
 * written.
 */
export async function upgradeFormat(
  store: Store,
  format: number,
  raiseFile: () => Promise<void>,
): Promise<void> {
  for (let from = format; from < FORMAT_VERSION; from++) {
    const operations = await STEPS[from]?.(store);
    if (operations === undefined) throw new Error(`no step from format ${from}`);
    await raiseFile();
    await store.write([...operations, formatRecord(from + 1)]);
  }
}

/** Reads FORMAT without opening LevelDB, which would write. Throws `store_mismatch`. */
export async function requireFolderFormat(folder: string): Promise<number> {
  const line = (await ifThere(readFile(join(folder, FILE), "latin1"))) ?? "";
  const [format, version] = parts(line, `${folder} holds`);
  requireFormat(`The store in ${folder}`, format, version);
  return format;
}

function parts(line: string, holds: string): [format: number, version: string] {
  const [, format, version = ""] = LINE.exec(line) ?? [];
  if (format !== undefined) return [Number(format), version];
  const detail = `${holds} a database without a valid file ${FILE}: an early Mintmark wrote it, or the file is lost.`;
  const advice = "Use the version that wrote it, or restore the whole folder from a copy.";
  throw new MintmarkError("store_mismatch", `${detail} Nothing was changed. ${advice}`);
}

const lineOf = (format: number) => `mintmark store ${format} by ${packageJson.version}\n`;

/**
 * Marks a folder, before LevelDB's first file is there, or before a step. At each moment the file
 * is whole.
 */
export async function writeFolderFormat(folder: string): Promise<void> {
  const path = join(folder, FILE);
  {
    await using file = await open(`${path}.new`, "w", 0o600);
    await file.writeFile(lineOf(FORMAT_VERSION));
    await file.sync();
  }
  await rename(`${path}.new`, path);
  const entries = await open(folder, "r");
  await entries.sync().finally(() => entries.close());
}

/** Resolves with undefined when the file that is read does not exist. */
export async function ifThere<T>(reading: Promise<T>): Promise<T | undefined> {
  return reading.catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return undefined;
    throw error;
  });
}
