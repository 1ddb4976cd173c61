import { mkdir, readFile, rename, writeFile } from "node:fs/promises";
import { dirname } from "node:path";
import { z } from "zod";
import type { Uuid } from "../../core/index.ts";
import type { GivenAnswers } from "./terms.ts";

const uuid = z.guid().transform((text) => text as Uuid);
const wei = z.string().regex(/^\d+$/).transform(BigInt);
const upRecord = z.strictObject({
  version: z.literal(1),
  chainId: z.int(),
  answers: z.unknown().transform((given) => given as GivenAnswers),
  /** Steps that are done, with the wei that each cost. */
  done: z.record(z.string(), wei),
  /** The step under way, and the deployer's wei before it. */
  begun: z.strictObject({ step: z.string(), balance: wei }).nullable(),
  /** Contracts whose sources are published. */
  published: z.array(z.string()).default([]),
  /** What the store has. */
  seeded: z
    .strictObject({
      applicationId: uuid,
      assets: z.array(z.strictObject({ symbol: z.string(), assetId: uuid })),
    })
    .nullable()
    .default(null),
});

/** What `mintmark up` has done so far. It holds no key and no address of a node. */
export type UpRecord = z.output<typeof upRecord>;

/** The record in a file; undefined without a file. Rejects for an invalid one. */
export async function readUp(path: string): Promise<UpRecord | undefined> {
  const text = await readFile(path, "utf8").catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return undefined;
    throw error;
  });
  if (text === undefined) return undefined;
  const parsed = upRecord.safeParse(JSON.parse(text));
  if (!parsed.success) throw new Error(`${path} is no record of mintmark up: ${z.prettifyError(parsed.error)}`);
  return parsed.data;
}

/** Replaces the whole record atomically. */
export async function writeUp(path: string, record: UpRecord): Promise<void> {
  await mkdir(dirname(path), { recursive: true });
  const text = JSON.stringify(record, (_, value: unknown) => (typeof value === "bigint" ? value.toString() : value), 2);
  await writeFile(`${path}.new`, `${text}\n`, { mode: 0o600 });
  await rename(`${path}.new`, path);
}
