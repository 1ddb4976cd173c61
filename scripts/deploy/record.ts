import { mkdir, readFile, rename, writeFile } from "node:fs/promises";
import { dirname, resolve } from "node:path";
import { z } from "zod";

const address = z
  .string()
  .regex(/^0x[0-9a-f]{40}$/)
  .transform((text) => text as `0x${string}`);
const integer = z.string().regex(/^\d+$/).transform(BigInt);

const settlementRecord = z.strictObject({
  address,
  deployedAtBlock: integer,
  gasUsed: integer,
  admin: address,
  guardian: address,
  operator: address,
  committee: z.array(address),
  threshold: z.int(),
  changeDelay: integer,
  maturity: integer,
  /** The contract whose code runs transfers; absent in a deployment without them. */
  transfersCode: address.optional(),
});

const tokenRecord = z.strictObject({
  standard: z.enum(["erc20", "erc721", "erc1155"]),
  address,
  name: z.string(),
  symbol: z.string(),
  quantum: integer,
  blobScheme: z.enum(["mintmark", "imx"]),
  minterLocked: z.boolean(),
  deployedAtBlock: integer,
  gasUsed: integer,
});

/** A mirror of the settlement contract on another chain, with its tokens. */
const mirrorRecord = z.strictObject({
  chainId: z.int(),
  address,
  deployedAtBlock: integer,
  gasUsed: integer,
  admin: address,
  committee: z.array(address),
  threshold: z.int(),
  changeDelay: integer,
  maturity: integer,
  tokens: z.array(tokenRecord),
});

const deployment = z.strictObject({
  version: z.literal(1),
  chainId: z.int(),
  settlement: settlementRecord,
  tokens: z.array(tokenRecord),
  mirrors: z.array(mirrorRecord).default([]),
});

export type SettlementRecord = z.output<typeof settlementRecord>;
export type TokenRecord = z.output<typeof tokenRecord>;
export type MirrorRecord = z.output<typeof mirrorRecord>;
/** A deployment: the file for engines and operators. Integers are decimal strings in the file. */
export type Deployment = z.output<typeof deployment>;

/** Whether a record has a token with this standard and symbol. */
export function isRecorded(
  recorded: readonly TokenRecord[] | undefined,
  token: Pick<TokenRecord, "standard" | "symbol">,
): boolean {
  return recorded?.some(({ standard, symbol }) => standard === token.standard && symbol === token.symbol) ?? false;
}

/** The path of a chain's record in a folder. */
export function recordPath(folder: string, chainId: number): string {
  return resolve(folder, `${chainId}.json`);
}

/** The record in a file; undefined without a file. Rejects for an invalid record. */
export async function readRecord(path: string): Promise<Deployment | undefined> {
  let text: string;
  try {
    text = await readFile(path, "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
  const parsed = deployment.safeParse(JSON.parse(text));
  if (!parsed.success) throw new Error(`${path} is not a deployment record: ${z.prettifyError(parsed.error)}`);
  return parsed.data;
}

/** Replaces the whole record atomically. */
export async function writeRecord(path: string, record: Deployment): Promise<void> {
  await mkdir(dirname(path), { recursive: true });
  const text = JSON.stringify(record, (_, value: unknown) => (typeof value === "bigint" ? value.toString() : value), 2);
  await writeFile(`${path}.new`, `${text}\n`);
  await rename(`${path}.new`, path);
}
