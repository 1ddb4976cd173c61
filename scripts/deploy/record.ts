import { rm } from "node:fs/promises";
import { resolve } from "node:path";
import { z } from "zod";
import { jsonText, textIn, writeWhole } from "../files.ts";

const hex = (pattern: RegExp) =>
  z
    .string()
    .regex(pattern)
    .transform((text) => text as `0x${string}`);
const address = hex(/^0x[0-9a-f]{40}$/);
export const integer = z.string().regex(/^\d+$/).transform(BigInt);

/** Facts of the creation of any contract. */
const created = { address, deployedAtBlock: integer, gasUsed: integer };
/** Delays are seconds. */
const terms = {
  committee: z.array(address).readonly(),
  threshold: z.int(),
  changeDelay: integer,
  maturity: integer,
};

const settlementRecord = z.strictObject({
  ...created,
  admin: address,
  guardian: address,
  operator: address,
  ...terms,
  /** The contract whose code runs transfers; absent in a deployment without them. */
  transfersCode: address.optional(),
  /** The contract whose code makes vaults; absent in a deployment without it. */
  makingsCode: address.optional(),
});

const tokenRecord = z.strictObject({
  standard: z.enum(["erc20", "erc721", "erc1155"]),
  ...created,
  name: z.string(),
  symbol: z.string(),
  quantum: integer,
  mintingBlobScheme: z.enum(["mintmark", "imx"]),
  minterLocked: z.boolean(),
});

const tokens = z.array(tokenRecord);

/** A mirror of the settlement contract on another chain, with its tokens. */
const mirrorRecord = z.strictObject({
  chainId: z.int(),
  ...created,
  admin: address,
  ...terms,
  tokens,
});

const deployment = z.strictObject({
  version: z.literal(1),
  chainId: z.int(),
  settlement: settlementRecord,
  tokens,
  mirrors: z.array(mirrorRecord).default([]),
});

/** The fields that tell of a contract's creation. */
export type CreationFields = typeof created;
export type Terms = typeof terms;
export type SettlementRecord = z.output<typeof settlementRecord>;
export type TokenRecord = z.output<typeof tokenRecord>;
export type MirrorRecord = z.output<typeof mirrorRecord>;
/** A deployment: the file for engines and operators. Integers are decimal strings in the file. */
export type Deployment = z.output<typeof deployment>;

export function isRecorded(
  recorded: readonly TokenRecord[] = [],
  token: Pick<TokenRecord, "standard" | "symbol">,
) {
  return recorded.some(
    ({ standard, symbol }) => standard === token.standard && symbol === token.symbol,
  );
}

export function recordPath(folder: string, chainId: number): string {
  return resolve(folder, `${chainId}.json`);
}

/** The record in a file; undefined without a file. Rejects for an invalid record. */
export function readRecord(path: string): Promise<Deployment | undefined> {
  return recordIn(path, deployment, "not a deployment record");
}

export async function recordIn<T>(
  path: string,
  form: z.ZodType<T>,
  invalid: string,
): Promise<T | undefined> {
  const text = await textIn(path);
  if (text === undefined) return undefined;
  const parsed = form.safeParse(JSON.parse(text));
  if (!parsed.success) throw new Error(`${path} is ${invalid}: ${z.prettifyError(parsed.error)}`);
  return parsed.data;
}

export async function writeRecord(path: string, record: Deployment): Promise<void> {
  await writeWhole(path, jsonText(record));
}

const pending = z.record(z.string(), z.array(hex(/^0x[0-9a-f]+$/)).readonly());

export type PendingCreations = ReturnType<typeof pendingOf>;

/**
 * The signed creations of a run that its record does not name yet, in a file beside the record, by
 * the hash of their content; more than one when fees were raised, all with one nonce. Each is
 * written before it is sent, so a killed run continues with the same transactions, of which the
 * chain accepts only one. A signed transaction holds no secret.
 *
 * @param mirror - the chain of a mirror; default the settlement contract's own
 */
export function pendingOf(record: string, mirror?: number) {
  const path = mirror === undefined ? `${record}.pending` : `${record}.mirror-${mirror}.pending`;
  const all = async () => pending.parse(JSON.parse((await textIn(path)) ?? "{}"));
  return {
    /** Undefined when none is pending. */
    get: async (hash: string): Promise<readonly `0x${string}`[] | undefined> => (await all())[hash],
    set: async (hash: string, signed: readonly `0x${string}`[]) =>
      writeWhole(path, JSON.stringify({ ...(await all()), [hash]: signed })),
    isEmpty: async () => Object.keys(await all()).length === 0,
    /** Deletes all, once the record names their contracts. */
    clear: () => rm(path, { force: true }),
  };
}
