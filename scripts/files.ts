import { mkdir, readFile, rename, writeFile } from "node:fs/promises";
import { dirname } from "node:path";

/** Replaces a file in one step: a killed process leaves no half of it. */
export async function writeWhole(path: string, text: string, mode?: number): Promise<void> {
  await mkdir(dirname(path), { recursive: true });
  await writeFile(`${path}.new`, text, { mode });
  await rename(`${path}.new`, path);
}

/** The text of a file; undefined without a file. */
export async function textIn(path: string): Promise<string | undefined> {
  return readFile(path, "utf8").catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return undefined;
    throw error;
  });
}

/**
 * JSON for machines, with integers beyond a double as decimal strings: one document, with a newline
 * at its end.
 */
export function jsonText(value: unknown): string {
  const plain = (_: string, part: unknown) => (typeof part === "bigint" ? part.toString() : part);
  return `${JSON.stringify(value, plain, 2)}\n`;
}
