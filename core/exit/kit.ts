import { invalid, MintmarkError } from "../errors.ts";
import type { Address, Hex, MintingBlobScheme, Standard, VaultId } from "../model.ts";
import { batchIdOf, MINTING_BLOB_SCHEMES, STANDARDS } from "../model.ts";
import type { ProvenVault, Settlement, VaultContent } from "../ports.ts";
import { assetType } from "../protocol/asset.ts";
import { tokenIdOf } from "../protocol/minting-blob.ts";
import { verifyVaultProof } from "../protocol/proof.ts";
import { MAX_TRANSFER_HOPS } from "../protocol/transfer.ts";
import { isTransferred, tipIdOf, tipOwnerOf, verifyHops } from "../protocol/transfer-proof.ts";
import { unpackVaultId } from "../protocol/vault.ts";
import { decimal, hex, list, nullOr, object, oneOf, type Read, wholeNumber } from "../validate.ts";

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
    readonly mintingBlobScheme: MintingBlobScheme;
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
/** The version of the format. */
export const EXIT_KIT_VERSION = 1;

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
  const { vaultId, chainId, owner, assetType, amount, mintingBlob } = vault;
  return asText({
    format: EXIT_KIT_FORMAT,
    version: EXIT_KIT_VERSION,
    chainId: settlement.chainId,
    contract: settlement.contract,
    token,
    vault: { ...placeOf(vaultId), chainId, owner, assetType, amount, mintingBlob },
    header,
    siblings,
    assetPath,
    maturesAt,
    tip: { ...placeOf(tip.vaultId), owner: tip.owner, amount: tip.amount },
    hops,
    refutation,
  } as const);
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
  const { address, standard, quantum, mintingBlobScheme, tokenId } = token;
  if (vault.chainId !== settlement.chainId)
    throw unfit(`its token lives on chain ${vault.chainId}, where this contract cannot mint`);
  if (assetType(standard, address, quantum) !== vault.assetType)
    throw unfit("its token is not the vault's asset");
  if (tokenIdOf(standard, mintingBlobScheme, vault.mintingBlob) !== tokenId)
    throw unfit("its token id is not the vault's");
  if (tip.vaultId !== tipIdOf(kit) || tip.owner !== tipOwnerOf(kit))
    throw unfit("its transfers make another vault");
  // The proof covers the minted vault, and L1 compares the amount of one that transfers made.
  if (!isTransferred(kit) && tip.amount !== vault.amount)
    throw unfit("it pays another amount than its vault has");
}

function unfit(what: string): MintmarkError {
  return invalid(`The exit kit is damaged: ${what}.`);
}

/**
 * The kit in a file's text (docs/exit-kit.md). Throws `validation_failed` that names the place of
 * the first fault.
 *
 * @example
 * const kit = parseExitKit(await readFile("exit-kit.json", "utf8"));
 */
export function parseExitKit(text: string): ExitKit {
  return readFile(text, "an exit kit", exitKit);
}

/** The value in a file's text. Throws `validation_failed`, for `sort` such as "an exit kit". */
export function readFile<T>(text: string, sort: string, read: Read<T>): T {
  try {
    return read("", JSON.parse(text));
  } catch (error) {
    const what = error instanceof SyntaxError ? "it is not JSON" : (error as Error).message;
    if (!(error instanceof SyntaxError || error instanceof MintmarkError)) throw error;
    throw invalid(`This is not ${sort}: ${what}.`);
  }
}

/** A kit at a place of a file. */
export function exitKit(place: string, json: unknown): ExitKit {
  const { format, version } = (json ?? {}) as {
    readonly format?: unknown;
    readonly version?: unknown;
  };
  // A kit of another version has other fields, of which the first would be called unknown.
  if (format === EXIT_KIT_FORMAT && Number.isInteger(version) && version !== EXIT_KIT_VERSION)
    throw invalid(`it has version ${version}; this version of Mintmark reads ${EXIT_KIT_VERSION}`);
  const { chainId, contract, vault, tip, hops, refutation, ...file } = kitFile(place, json);
  return {
    settlement: { chainId, contract },
    token: file.token,
    vault: contentOf(vault),
    header: file.header,
    siblings: file.siblings,
    assetPath: file.assetPath,
    maturesAt: file.maturesAt,
    tip: contentOf(tip),
    ...(hops.length > 0 && { hops }),
    ...(refutation && { refutation }),
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

const hash: Read<Hex> = hex(32, 32);
const address = hex(20, 20);

const place = {
  vaultId: decimal,
  // The id has it too, so it is not read.
  batchId: () => "",
  slot: wholeNumber(0, 2 ** 32),
};
const batchHeader = object({
  batchRoot: hash,
  vaultCount: wholeNumber(1, 2 ** 32),
  committedAt: decimal,
  sequence: decimal,
});

const hop = object({
  outId: decimal,
  part: oneOf([0, 1]),
  amount: decimal,
  to: address,
  deadline: decimal,
  list: hash,
  signature: hex(0, 64),
  header: batchHeader,
  siblings: list(hash, 20),
});

const kitFile = object({
  format: oneOf([EXIT_KIT_FORMAT]),
  version: oneOf([EXIT_KIT_VERSION]),
  chainId: decimal,
  contract: address,
  token: object({
    address,
    standard: oneOf(STANDARDS),
    quantum: decimal,
    mintingBlobScheme: oneOf(MINTING_BLOB_SCHEMES),
    tokenId: nullOr(decimal),
  }),
  vault: object({
    ...place,
    chainId: decimal,
    owner: address,
    assetType: hash,
    amount: decimal,
    mintingBlob: hex(0, 255),
  }),
  header: batchHeader,
  siblings: list(hash, 20),
  assetPath: object({ index: wholeNumber(0, 254), siblings: list(hash, 8) }),
  maturesAt: nullOr(decimal),
  /** The vault that is paid: after transfers another than the minted one. */
  tip: object({ ...place, owner: address, amount: decimal }),
  hops: list(hop, MAX_TRANSFER_HOPS),
  refutation: nullOr(hop),
});
