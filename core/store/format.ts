import { open, readFile } from "node:fs/promises";
import { join } from "node:path";
import packageJson from "../../package.json" with { type: "json" };
import { MintmarkError } from "../errors.ts";

/**
 * Version of everything that a store holds: keys, records, journal entries, batch data, roots. Every change of a
 * persisted byte raises it; `test/core/engine/format.test.ts` notices a change.
 */
export const FORMAT_VERSION = 8;

/** Throws `store_mismatch` for another format than this version's. */
export function requireFormat(name: string, format: number, writtenBy = "that wrote it"): void {
  if (format === FORMAT_VERSION) return;
  const detail = `${name} has format ${format}, and this version of Mintmark reads format ${FORMAT_VERSION}.`;
  throw new MintmarkError("store_mismatch", `${detail} Nothing was changed. Use the version ${writtenBy}.`);
}

const FILE = "FORMAT";
/** `mintmark store <format> by <version of Mintmark>`, and a line feed. */
const LINE = /^mintmark store (\d{1,9}) by (\S{1,64})\n$/;

/**
 * Throws `store_mismatch` unless a folder's store has this version's format. The format is in a file next to LevelDB's,
 * because LevelDB writes to a folder as soon as it opens it.
 */
export async function requireFolderFormat(folder: string): Promise<void> {
  const [, format, version] = LINE.exec(await formatIn(folder)) ?? [];
  if (format === undefined) {
    const detail = `${folder} holds a database without a valid file ${FILE}: an early Mintmark wrote it, or the file is lost.`;
    const advice = "Use the version that wrote it, or restore the whole folder from a copy.";
    throw new MintmarkError("store_mismatch", `${detail} Nothing was changed. ${advice}`);
  }
  requireFormat(`The store in ${folder}`, Number(format), version);
}

/** Marks a folder without a store, before LevelDB's first file is there. LevelDB makes the folder's entries durable. */
export async function writeFolderFormat(folder: string): Promise<void> {
  const file = await open(join(folder, FILE), "w", 0o600);
  try {
    await file.writeFile(`mintmark store ${FORMAT_VERSION} by ${packageJson.version}\n`);
    await file.sync();
  } finally {
    await file.close();
  }
}

async function formatIn(folder: string): Promise<string> {
  try {
    return await readFile(join(folder, FILE), "latin1");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return "";
    throw error;
  }
}
