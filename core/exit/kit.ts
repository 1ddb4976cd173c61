import { MintmarkError } from "../errors.ts";
import type { Address, BlobScheme, Standard } from "../model.ts";
import type { ProvenVault, Settlement } from "../ports.ts";
import { assetType } from "../protocol/asset.ts";
import { tokenIdOf } from "../protocol/blob.ts";
import { verifyVaultProof } from "../protocol/proof.ts";
import { unpackVaultId } from "../protocol/vault.ts";

/**
 * Everything that a vault's owner needs to withdraw without engine, server and operator. The kit, an RPC of the chain
 * and the owner's key are enough while the contract exists. It holds no secret: only the owner's own transaction can
 * use it. It is valid from the batch's commit on, and never expires.
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
}

/** The format name in the file; docs/exit-kit.md. */
export const EXIT_KIT_FORMAT = "mintmark-exit-kit";
/** The format version that this package writes. */
export const EXIT_KIT_VERSION = 1;

/**
 * The kit as JSON. Integers that a double cannot hold are decimal strings.
 *
 * @example
 * await writeFile("exit-kit.json", JSON.stringify(exitKitToJson(kit)));
 */
export function exitKitToJson({ settlement, token, vault, header, siblings, assetPath, maturesAt }: ExitKit) {
  const { mode, batchNumber, slot } = unpackVaultId(vault.vaultId);
  return {
    format: EXIT_KIT_FORMAT,
    version: EXIT_KIT_VERSION,
    chainId: settlement.chainId.toString(),
    contract: settlement.contract,
    token: { ...token, quantum: token.quantum.toString(), tokenId: token.tokenId?.toString() ?? null },
    vault: {
      vaultId: vault.vaultId.toString(),
      batchId: `${mode}-${batchNumber}`,
      slot,
      chainId: vault.chainId.toString(),
      owner: vault.owner,
      assetType: vault.assetType,
      amount: vault.amount.toString(),
      blob: vault.blob,
    },
    header: {
      batchRoot: header.batchRoot,
      vaultCount: header.vaultCount,
      committedAt: header.committedAt.toString(),
      sequence: header.sequence.toString(),
    },
    siblings: [...siblings],
    assetPath: { index: assetPath.index, siblings: [...assetPath.siblings] },
    maturesAt: maturesAt?.toString() ?? null,
  };
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
  if (!verifyVaultProof(header.batchRoot, { vault, vaultCount: header.vaultCount, siblings, assetPath })) {
    throw unfit("its siblings do not lead from the vault and its asset to the batch root");
  }
}

/** The same without the proof, which takes JavaScript 0.1 s for a vault in blobs. */
export function requireFittingParts({ settlement, token, vault }: ExitKit): void {
  const { address, standard, quantum, blobScheme, tokenId } = token;
  if (vault.chainId !== settlement.chainId) {
    throw unfit(`its token lives on chain ${vault.chainId}, where this contract cannot mint`);
  }
  if (assetType(standard, address, quantum) !== vault.assetType) throw unfit("its token is not the vault's asset");
  if (tokenIdOf(standard, blobScheme, vault.blob) !== tokenId) throw unfit("its token id is not the vault's");
}

function unfit(what: string): MintmarkError {
  return new MintmarkError("validation_failed", `The exit kit is damaged: ${what}.`);
}
