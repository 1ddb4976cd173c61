import { mkdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { dirname } from "node:path";
import { z } from "zod";

const hex = z
  .string()
  .regex(/^0x[0-9a-f]+$/)
  .transform((text) => text as `0x${string}`);
const pending = z.record(z.string(), hex);

/**
 * Signed creations without a record yet, by the hash of their content. Each is written before it is sent, so a killed
 * run continues with the same transaction, which the chain accepts only once. A signed transaction holds no secret.
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

  /** Deletes all, once the record names their contracts. */
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

/** The signed and unrecorded creations of a run, stored beside the record. */
export function pendingOf(record: string): PendingCreations {
  return new PendingCreations(`${record}.pending`);
}

/** The same for the chain of a mirror. */
export function pendingOfMirror(record: string, chainId: number): PendingCreations {
  return pendingOf(`${record}.mirror-${chainId}`);
}
