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
import {
  hex,
  integer,
  list,
  number,
  object,
  oneOf,
  orNull,
  type Read,
  readFile,
  WrongForm,
} from "./file-form.ts";

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

/** A kit at a place of a file. */
export function exitKit(json: unknown, place: string): ExitKit {
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
    throw new WrongForm(`it has version ${version}; this version of Mintmark reads ${read}`);
  }
  if (version !== 2) {
    const kit = kitOf(mintedKit(json, place));
    const { vaultId, owner, amount } = kit.vault;
    return { ...kit, tip: { vaultId, owner, amount } };
  }
  const { tip, hops, refutation, ...file } = transferredKit(json, place);
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

const hash: Read<Hex> = hex(32, 32);
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
