import { rm } from "node:fs/promises";
import { z } from "zod";
import { textIn, writeWhole } from "../files.ts";

const hex = z
  .string()
  .regex(/^0x[0-9a-f]+$/)
  .transform((text) => text as `0x${string}`);
const pending = z.record(z.string(), hex);

export type PendingCreations = ReturnType<typeof pendingOf>;

/**
 * The signed creations of a run that its record does not name yet, in a file beside the record, by the hash of their
 * content. Each is written before it is sent, so a killed run continues with the same transaction, which the chain
 * accepts only once. A signed transaction holds no secret.
 */
export function pendingOf(record: string) {
  const path = `${record}.pending`;
  const all = async () => pending.parse(JSON.parse((await textIn(path)) ?? "{}"));
  return {
    /** Undefined when none is pending. */
    get: async (hash: string): Promise<`0x${string}` | undefined> => (await all())[hash],
    set: async (hash: string, signed: `0x${string}`) =>
      writeWhole(path, JSON.stringify({ ...(await all()), [hash]: signed })),
    isEmpty: async () => Object.keys(await all()).length === 0,
    /** Deletes all, once the record names their contracts. */
    clear: () => rm(path, { force: true }),
  };
}

/** The same for the chain of a mirror. */
export function pendingOfMirror(record: string, chainId: number): PendingCreations {
  return pendingOf(`${record}.mirror-${chainId}`);
}
