import { readFile, writeFile } from "node:fs/promises";
import { z } from "zod";
import { EXIT_KIT_FORMAT, EXIT_KIT_VERSION, type ExitKit, exitKitToJson } from "../../core/exit/index.ts";
import { BLOB_SCHEMES } from "../../core/index.ts";

const hex = (bytes: number) =>
  z
    .string()
    .regex(new RegExp(`^0x[0-9a-f]{${2 * bytes}}$`), `not ${bytes} bytes of lower-case hex`)
    .transform((text) => text as `0x${string}`);
const integer = z
  .string()
  .regex(/^\d{1,78}$/, "not a decimal integer")
  .transform(BigInt);

/** docs/exit-kit.md; each version has its own schema. */
const exitKitFile = z.strictObject({
  format: z.literal(EXIT_KIT_FORMAT),
  version: z.literal(EXIT_KIT_VERSION),
  chainId: integer,
  contract: hex(20),
  token: z.strictObject({
    address: hex(20),
    standard: z.enum(["erc20", "erc721", "erc1155"]),
    quantum: integer,
    blobScheme: z.enum(BLOB_SCHEMES),
    tokenId: integer.nullable(),
  }),
  vault: z.strictObject({
    vaultId: integer,
    batchId: z.string(),
    slot: z.int(),
    chainId: integer,
    owner: hex(20),
    assetType: hex(32),
    amount: integer,
    blob: z
      .string()
      .regex(/^0x(?:[0-9a-f]{2}){0,255}$/, "not at most 255 bytes of lower-case hex")
      .transform((text) => text as `0x${string}`),
  }),
  header: z.strictObject({
    batchRoot: hex(32),
    vaultCount: z.int().positive(),
    committedAt: integer,
    sequence: integer,
  }),
  siblings: z.array(hex(32)).max(20),
  assetPath: z.strictObject({ index: z.int().nonnegative().max(254), siblings: z.array(hex(32)).max(8) }),
  maturesAt: integer.nullable(),
});

/** The kit in a file's text. Throws with the position and reason of each fault. */
export function parseExitKit(text: string): ExitKit {
  const parsed = exitKitFile.safeParse(jsonOf(text));
  if (!parsed.success) throw new Error(`not an exit kit: ${z.prettifyError(parsed.error)}`);
  const { chainId, contract, token, vault, header, siblings, assetPath, maturesAt } = parsed.data;
  // Batch and slot are for the file's reader. The vault's id has the same facts, and the proof covers it.
  const { batchId: _batchId, slot: _slot, ...content } = vault;
  return { settlement: { chainId, contract }, token, vault: content, header, siblings, assetPath, maturesAt };
}

export async function readExitKit(path: string): Promise<ExitKit> {
  return parseExitKit(await readFile(path, "utf8"));
}

export function exitKitText(kit: ExitKit): string {
  return `${JSON.stringify(exitKitToJson(kit), null, 2)}\n`;
}

/** Never replaces a file, which may be the only copy of another kit. */
export function writeExitKit(path: string, kit: ExitKit): Promise<void> {
  return writeFile(path, exitKitText(kit), { flag: "wx" });
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new Error("not an exit kit: not JSON");
  }
}
