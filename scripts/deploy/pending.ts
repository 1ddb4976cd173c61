import { rm } from "node:fs/promises";
import { z } from "zod";
import { textIn, writeWhole } from "../files.ts";

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
    await writeWhole(this.#path, JSON.stringify({ ...(await this.#read()), [hash]: signed }));
  }

  async isEmpty(): Promise<boolean> {
    return Object.keys(await this.#read()).length === 0;
  }

  /** Deletes all, once the record names their contracts. */
  async clear(): Promise<void> {
    await rm(this.#path, { force: true });
  }

  async #read(): Promise<Readonly<Record<string, `0x${string}`>>> {
    return pending.parse(JSON.parse((await textIn(this.#path)) ?? "{}"));
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
