import { mkdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { dirname } from "node:path";
import { z } from "zod";

const hex = z
  .string()
  .regex(/^0x[0-9a-f]+$/)
  .transform((text) => text as `0x${string}`);
const pending = z.record(z.string(), hex);

/**
 * Signed creations that no record names yet, by the hash of what they create. Each is written before it is sent, so a
 * run that was killed at any moment is continued with the very same transaction, which the chain takes only once. A
 * signed transaction holds no secret.
 */
export class PendingCreations {
  readonly #path: string;

  constructor(path: string) {
    this.#path = path;
  }

  /** The signed creation of a hash; undefined when none is pending. */
  async get(hash: string): Promise<`0x${string}` | undefined> {
    return (await this.#read())[hash];
  }

  async set(hash: string, signed: `0x${string}`): Promise<void> {
    const all = { ...(await this.#read()), [hash]: signed };
    await mkdir(dirname(this.#path), { recursive: true });
    await writeFile(`${this.#path}.new`, JSON.stringify(all));
    await rename(`${this.#path}.new`, this.#path);
  }

  async isEmpty(): Promise<boolean> {
    return Object.keys(await this.#read()).length === 0;
  }

  /** Forgets them all, once the record names what they created. */
  async clear(): Promise<void> {
    await rm(this.#path, { force: true });
  }

  async #read(): Promise<Readonly<Record<string, `0x${string}`>>> {
    const text = await readFile(this.#path, "utf8").catch((error: NodeJS.ErrnoException) => {
      if (error.code === "ENOENT") return "{}";
      throw error;
    });
    return pending.parse(JSON.parse(text));
  }
}

/** What a run has signed but not yet recorded is kept beside the record. */
export function pendingOf(record: string): PendingCreations {
  return new PendingCreations(`${record}.pending`);
}

/** The same for what a run creates on the chain of a mirror. */
export function pendingOfMirror(record: string, chainId: number): PendingCreations {
  return pendingOf(`${record}.mirror-${chainId}`);
}
