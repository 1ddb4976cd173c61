import { MintmarkError } from "../../errors.ts";
import { type Address, type BlobScheme, batchIdOf, type Standard, type VaultId } from "../../model.ts";
import type { ProvenVault, Settlement } from "../../ports.ts";
import { assetType } from "../../protocol/asset.ts";
import { tokenIdOf } from "../../protocol/blob.ts";
import { verifyVaultProof } from "../../protocol/proof.ts";
import { isTransferred, tipIdOf, tipOwnerOf, verifyHops } from "../../protocol/transfer-proof.ts";
import { unpackVaultId } from "../../protocol/vault.ts";

/**
 * Everything that a vault's owner needs to withdraw without engine, server and operator. The kit, an RPC of the chain
 * and the owner's key are enough while the contract exists. It holds no secret: only the owner's own transaction can
 * use it. It is valid from the batch's commit on, until its owner signs the vault away. `vault` is the minted vault.
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
  /** ERC-721: seconds since 1970 from which L1 pays it out; null for others, which need not wait. */
  readonly maturesAt: bigint | null;
  /** What the kit pays: the last vault of `hops`, or without transfers the minted vault. */
  readonly tip: ExitTip;
}

/** The vault that an exit kit pays. */
export interface ExitTip {
  readonly vaultId: VaultId;
  readonly owner: Address;
  /** Units at first, before any withdrawal. */
  readonly amount: bigint;
}

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
  const { settlement, token, vault, header, siblings, assetPath, maturesAt, tip, hops = [], refutation = null } = kit;
  const { vaultId, chainId, owner, assetType, amount, blob } = vault;
  const common = asText({
    ...{ chainId: settlement.chainId, contract: settlement.contract, token },
    vault: { ...placeOf(vaultId), chainId, owner, assetType, amount, blob },
    ...{ header, siblings, assetPath, maturesAt },
  });
  if (!isTransferred(kit)) return { format: EXIT_KIT_FORMAT, version: 1 as const, ...common };
  const paid = { ...placeOf(tip.vaultId), owner: tip.owner, amount: tip.amount };
  return { format: EXIT_KIT_FORMAT, version: 2 as const, ...common, ...asText({ tip: paid, hops, refutation }) };
}

function placeOf(vaultId: VaultId) {
  const { mode, batchNumber, slot } = unpackVaultId(vaultId);
  return { vaultId, batchId: batchIdOf(mode, batchNumber), slot };
}

type Text<T> = T extends bigint ? string : T extends object ? { -readonly [K in keyof T]: Text<T[K]> } : T;

function asText<T>(value: T): Text<T> {
  return JSON.parse(JSON.stringify(value, (_, part) => (typeof part === "bigint" ? part.toString() : part)));
}

/** The content of a kit file. */
export type ExitKitJson = ReturnType<typeof exitKitToJson>;

/**
 * Checks the parts of a kit against each other, without L1. Throws `validation_failed` that names the mismatch.
 *
 * @example
 * requireWholeKit(parseExitKit(await file.text()));
 */
export function requireWholeKit(kit: ExitKit): void {
  requireFittingParts(kit);
  const { vault, header, siblings, assetPath } = kit;
  if (!verifyVaultProof(header.batchRoot, { vault, vaultCount: header.vaultCount, siblings, assetPath }))
    throw unfit("its siblings do not lead from the vault and its asset to the batch root");
  if (!verifyHops(kit)) throw unfit("its transfers do not lead from the minted vault to the one that it pays");
}

/** The same without the proof, which takes JavaScript 0.1 s for a vault in blobs. */
export function requireFittingParts(kit: ExitKit): void {
  const { settlement, token, vault, tip } = kit;
  const { address, standard, quantum, blobScheme, tokenId } = token;
  if (vault.chainId !== settlement.chainId)
    throw unfit(`its token lives on chain ${vault.chainId}, where this contract cannot mint`);
  if (assetType(standard, address, quantum) !== vault.assetType) throw unfit("its token is not the vault's asset");
  if (tokenIdOf(standard, blobScheme, vault.blob) !== tokenId) throw unfit("its token id is not the vault's");
  if (tip.vaultId !== tipIdOf(kit) || tip.owner !== tipOwnerOf(kit)) throw unfit("its transfers make another vault");
}

function unfit(what: string): MintmarkError {
  return new MintmarkError("validation_failed", `The exit kit is damaged: ${what}.`);
}
