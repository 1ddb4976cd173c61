import { MintmarkError } from "../errors.ts";
import type { Hash, Mode, VaultId } from "../model.ts";
import type { AssetId, BatchHeader, VaultContent } from "../ports.ts";
import { type DecodeOptions, decodeBatch, placeVaults } from "../protocol/batch-decoder.ts";
import { BatchTree } from "../protocol/batch-tree.ts";
import { keccak256 } from "../protocol/hash.ts";
import { bytesToHex } from "../protocol/hex.ts";
import { batchRoot, kindOf, manifestRoot } from "../protocol/manifest.ts";
import type { BatchVaultProof } from "../protocol/proof.ts";
import { proveVault } from "../protocol/proof.ts";
import { unpackVaultId, vaultLeaves } from "../protocol/vault.ts";

/** Everything that follows from a batch's data and its place. */
export interface DerivedBatch {
  readonly dataHash: Hash;
  /** The batch's manifest. */
  readonly assets: readonly AssetId[];
  /** Root of the vault tree. */
  readonly content: Hash;
  readonly batchRoot: Hash;
  readonly vaultCount: number;
  /** In slot order; null for a void slot. */
  readonly slots: readonly (VaultContent | null)[];
  readonly tree: BatchTree;
}

/**
 * Derives a batch from its data, as L1 and every verifier do. Throws `BatchDataError` for what is not of the grammar, and with
 * `standardOf` for what L1 refuses for an asset's sake.
 */
export function deriveBatch(
  mode: Mode,
  batchNumber: number,
  data: Uint8Array,
  options?: Pick<DecodeOptions, "standardOf">,
): DerivedBatch {
  const { slots: entries, assets } = decodeBatch(data, options);
  const slots = placeVaults(entries, mode, batchNumber);
  const tree = new BatchTree(vaultLeaves(slots));
  const content = bytesToHex(tree.root);
  return {
    dataHash: bytesToHex(keccak256(data)),
    assets,
    content,
    batchRoot: batchRoot(kindOf(mode), manifestRoot(assets), content),
    vaultCount: slots.length,
    slots,
    tree,
  };
}

/** The vaults of a batch, without its void slots. */
export function vaultsOf({ slots }: DerivedBatch): VaultContent[] {
  return slots.filter((vault) => vault !== null);
}

/** The vault at its slot of the batch. Throws `vault_not_found` for a void slot and for one that the batch does not have. */
export function vaultIn({ slots }: DerivedBatch, vaultId: VaultId): VaultContent {
  const vault = slots[unpackVaultId(vaultId).slot] ?? null;
  if (vault === null) throw new MintmarkError("vault_not_found", `The batch holds no vault ${vaultId}.`);
  return vault;
}

/** A vault's proof in a batch that L1 has committed; verified before it is returned. Throws as {@link vaultIn}. */
export function committedProof(
  batch: DerivedBatch,
  vaultId: VaultId,
  { batchRoot, vaultCount, committedAt, sequence }: BatchHeader,
): BatchVaultProof & { readonly header: BatchHeader } {
  const vault = vaultIn(batch, vaultId);
  const leaf = bytesToHex(batch.tree.leaf(unpackVaultId(vaultId).slot));
  const header = { batchRoot, vaultCount, committedAt, sequence };
  return { ...proveVault(batch, vault), batchRoot, leaf, header };
}

/** Whether a batch is the one that a claim, or L1, names. */
export function isBatch(
  batch: DerivedBatch,
  claim: Pick<DerivedBatch, "dataHash" | "batchRoot" | "vaultCount">,
): boolean {
  const { dataHash, batchRoot, vaultCount } = claim;
  return batch.dataHash === dataHash && batch.batchRoot === batchRoot && batch.vaultCount === vaultCount;
}
