import { MintmarkError } from "../errors.ts";
import type { Address, BlobScheme, Hex, Standard, VaultId } from "../model.ts";
import { BLOB_SCHEMES, batchIdOf, STANDARDS } from "../model.ts";
import type { ProvenVault, Settlement, VaultContent } from "../ports.ts";
import { assetType } from "../protocol/asset.ts";
import { tokenIdOf } from "../protocol/blob.ts";
import { verifyVaultProof } from "../protocol/proof.ts";
import { MAX_TRANSFER_HOPS } from "../protocol/transfer.ts";
import { isTransferred, tipIdOf, tipOwnerOf, verifyHops } from "../protocol/transfer-proof.ts";
import { unpackVaultId } from "../protocol/vault.ts";

/**
 * Everything that a vault's owner needs to withdraw without engine, server and operator. The kit,
 * an RPC of the chain and the owner's key are enough while the contract exists. It holds no secret:
 * only the owner's own transaction can use it. It is valid from the batch's commit on, until its
 * owner signs the vault away. `vault` is the minted vault.
 */
export interface ExitKit extends ProvenVault {
  readonly settlement: Pick<Settlement, "chainId" | "contract">;
  readonly token: {
    readonly address: Address;
    readonly standard: Standard;
    /** Base units of one unit of the vault's amount. */
    readonly quantum: bigint;
    readonly blobScheme: BlobScheme;
    /** null for ERC-20. */
    readonly tokenId: bigint | null;
  };
  /**
   * ERC-721: seconds since 1970 from which L1 pays it out; null for others, which need not wait.
   */
  readonly maturesAt: bigint | null;
  /** The vault that the kit pays: the last one of `hops`, or without transfers the minted one. */
  readonly tip: ExitTip;
}

/** The vault that an exit kit pays. The amount is that before any withdrawal. */
export type ExitTip = Pick<VaultContent, "vaultId" | "owner" | "amount">;

/** The format name in the file; docs/exit-kit.md. */
export const EXIT_KIT_FORMAT = "mintmark-exit-kit";
/** The format versions: 2 is for vaults with transfers, and 1 for all others. */
export const EXIT_KIT_VERSIONS = [1, 2] as const;

/**
 * The kit as JSON. Integers that a double cannot hold are decimal strings.
 *
 * @example
 * await writeFile("exit-kit.json", JSON.stringify(exitKitToJson(kit)));
 */
export function exitKitToJson(kit: ExitKit) {
  const {
    settlement,
    token,
    vault,
    header,
    siblings,
    assetPath,
    maturesAt,
    tip,
    hops = [],
    refutation = null,
  } = kit;
  const { vaultId, chainId, owner, assetType, amount, blob } = vault;
  const common = asText({
    chainId: settlement.chainId,
    contract: settlement.contract,
    token,
    vault: { ...placeOf(vaultId), chainId, owner, assetType, amount, blob },
    header,
    siblings,
    assetPath,
    maturesAt,
  });
  if (!isTransferred(kit)) return { format: EXIT_KIT_FORMAT, version: 1 as const, ...common };
  const paid = { ...placeOf(tip.vaultId), owner: tip.owner, amount: tip.amount };
  return {
    format: EXIT_KIT_FORMAT,
    version: 2 as const,
    ...common,
    ...asText({ tip: paid, hops, refutation }),
  };
}

function placeOf(vaultId: VaultId) {
  const { mode, batchNumber, slot } = unpackVaultId(vaultId);
  return { vaultId, batchId: batchIdOf(mode, batchNumber), slot };
}

type Text<T> = T extends bigint
  ? string
  : T extends object
    ? { -readonly [K in keyof T]: Text<T[K]> }
    : T;

function asText<T>(value: T): Text<T> {
  return JSON.parse(
    JSON.stringify(value, (_, part) => (typeof part === "bigint" ? part.toString() : part)),
  );
}

/** The content of a kit file. */
export type ExitKitJson = ReturnType<typeof exitKitToJson>;

/**
 * Checks the parts of a kit against each other, without L1. Throws `validation_failed` that names
 * the mismatch.
 *
 * @example
 * requireWholeKit(parseExitKit(await file.text()));
 */
export function requireWholeKit(kit: ExitKit): void {
  requireFittingParts(kit);
  const { vault, header, siblings, assetPath } = kit;
  if (
    !verifyVaultProof(header.batchRoot, {
      vault,
      vaultCount: header.vaultCount,
      siblings,
      assetPath,
    })
  )
    throw unfit("its siblings do not lead from the vault and its asset to the batch root");
  if (!verifyHops(kit))
    throw unfit("its transfers do not lead from the minted vault to the one that it pays");
}

/** Checks all but the proof, which takes JavaScript 0.1 s for a vault in blobs. */
export function requireFittingParts(kit: ExitKit): void {
  const { settlement, token, vault, tip } = kit;
  const { address, standard, quantum, blobScheme, tokenId } = token;
  if (vault.chainId !== settlement.chainId)
    throw unfit(`its token lives on chain ${vault.chainId}, where this contract cannot mint`);
  if (assetType(standard, address, quantum) !== vault.assetType)
    throw unfit("its token is not the vault's asset");
  if (tokenIdOf(standard, blobScheme, vault.blob) !== tokenId)
    throw unfit("its token id is not the vault's");
  if (tip.vaultId !== tipIdOf(kit) || tip.owner !== tipOwnerOf(kit))
    throw unfit("its transfers make another vault");
}

function unfit(what: string): MintmarkError {
  return new MintmarkError("validation_failed", `The exit kit is damaged: ${what}.`);
}

/** Reads a value at a place of the file, or throws what is wrong there. */
type Read<T> = (value: unknown, place: string) => T;

/**
 * The kit in a file's text (docs/exit-kit.md). Throws `validation_failed` that names the place of
 * the first fault.
 *
 * @example
 * const kit = parseExitKit(await readFile("exit-kit.json", "utf8"));
 */
export function parseExitKit(text: string): ExitKit {
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch {
    throw unreadable("it is not JSON");
  }
  const { format, version } = (json ?? {}) as {
    readonly format?: unknown;
    readonly version?: unknown;
  };
  if (
    format === EXIT_KIT_FORMAT &&
    Number.isInteger(version) &&
    !EXIT_KIT_VERSIONS.some((each) => each === version)
  ) {
    const read = `${EXIT_KIT_VERSIONS[0]} to ${EXIT_KIT_VERSIONS.at(-1)}`;
    throw unreadable(`it has version ${version}; this version of Mintmark reads ${read}`);
  }
  if (version !== 2) {
    const kit = kitOf(mintedKit(json, ""));
    const { vaultId, owner, amount } = kit.vault;
    return { ...kit, tip: { vaultId, owner, amount } };
  }
  const { tip, hops, refutation, ...file } = transferredKit(json, "");
  return {
    ...kitOf(file),
    tip: contentOf(tip),
    ...(hops.length > 0 && { hops }),
    ...(refutation && { refutation }),
  };
}

function kitOf(file: ReturnType<typeof mintedKit>): Omit<ExitKit, "tip"> {
  const { chainId, contract, token, vault, header, siblings, assetPath, maturesAt } = file;
  return {
    settlement: { chainId, contract },
    token,
    vault: contentOf(vault),
    header,
    siblings,
    assetPath,
    maturesAt,
  };
}

/**
 * Batch and slot are for the file's reader. The vault's id has the same facts, and the proof covers
 * it.
 */
function contentOf<V extends { readonly batchId: string; readonly slot: number }>(
  vault: V,
): Omit<V, "batchId" | "slot"> {
  const { batchId: _batchId, slot: _slot, ...content } = vault;
  return content;
}

const hash = hex(32, 32);
const address = hex(20, 20);

const place = {
  vaultId: integer,
  batchId: (value: unknown) => String(value),
  slot: number(0, 2 ** 32),
};
const batchHeader = object({
  batchRoot: hash,
  vaultCount: number(1, 2 ** 32),
  committedAt: integer,
  sequence: integer,
});

const common = {
  format: oneOf([EXIT_KIT_FORMAT]),
  version: oneOf(EXIT_KIT_VERSIONS),
  chainId: integer,
  contract: address,
  token: object({
    address,
    standard: oneOf(STANDARDS),
    quantum: integer,
    blobScheme: oneOf(BLOB_SCHEMES),
    tokenId: orNull(integer),
  }),
  vault: object({
    ...place,
    chainId: integer,
    owner: address,
    assetType: hash,
    amount: integer,
    blob: hex(0, 255),
  }),
  header: batchHeader,
  siblings: list(hash, 20),
  assetPath: object({ index: number(0, 254), siblings: list(hash, 8) }),
  maturesAt: orNull(integer),
};

const hop = object({
  outId: integer,
  part: oneOf([0, 1]),
  amount: integer,
  to: address,
  deadline: integer,
  list: hash,
  signature: hex(0, 64),
  header: batchHeader,
  siblings: list(hash, 20),
});

const mintedKit = object(common); // Version 1
/** Version 2: a vault with transfers, or with a record to refute. */
const transferredKit = object({
  ...common,
  tip: object({ ...place, owner: address, amount: integer }),
  hops: list(hop, MAX_TRANSFER_HOPS),
  refutation: orNull(hop),
});

function integer(value: unknown, place: string): bigint {
  if (typeof value === "string" && /^\d{1,78}$/.test(value)) return BigInt(value);
  throw unreadable(`${place} is not a decimal integer`);
}

function number(least: number, most: number): Read<number> {
  return (value, place) => {
    if (typeof value === "number" && Number.isInteger(value) && value >= least && value <= most)
      return value;
    throw unreadable(`${place} is not a whole number from ${least} to ${most}`);
  };
}

function hex(least: number, most: number): Read<Hex> {
  const form = new RegExp(`^0x(?:[0-9a-f]{2}){${least},${most}}$`);
  const bytes = least === most ? `${most}` : `at most ${most}`;
  return (value, place) => {
    if (typeof value === "string" && form.test(value)) return value as Hex;
    throw unreadable(`${place} is not ${bytes} bytes of lower-case hex`);
  };
}

function oneOf<const V>(values: readonly V[]): Read<V> {
  return (value, place) => {
    const found = values.find((each) => each === value);
    if (found !== undefined) return found;
    throw unreadable(`${place} is not ${values.join(", ")}`);
  };
}

function orNull<T>(read: Read<T>): Read<T | null> {
  return (value, place) => (value === null ? null : read(value, place));
}

function list<T>(read: Read<T>, most: number): Read<T[]> {
  return (value, place) => {
    if (!Array.isArray(value) || value.length > most)
      throw unreadable(`${place} is not a list of at most ${most}`);
    return value.map((each, i) => read(each, `${place}[${i}]`));
  };
}

/** An object with exactly these fields. */
function object<F extends Readonly<Record<string, Read<unknown>>>>(
  fields: F,
): Read<{ [K in keyof F]: ReturnType<F[K]> }> {
  return (value, place) => {
    if (typeof value !== "object" || value === null)
      throw unreadable(`${place || "it"} is not an object`);
    const within = (name: string) => (place === "" ? name : `${place}.${name}`);
    for (const name of Object.keys(value))
      if (!Object.hasOwn(fields, name)) throw unreadable(`${within(name)} is unknown`);
    const given = value as Record<string, unknown>;
    const read = Object.entries(fields).map(([name, field]) => [
      name,
      field(given[name], within(name)),
    ]);
    return Object.fromEntries(read) as { [K in keyof F]: ReturnType<F[K]> };
  };
}

function unreadable(what: string): MintmarkError {
  return new MintmarkError("validation_failed", `This is not an exit kit: ${what}.`);
}
