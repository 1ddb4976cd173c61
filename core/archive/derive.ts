import { MintmarkError } from "../errors.ts";
import type { Hash, Mode, VaultId } from "../model.ts";
import type { AssetId, BatchHeader, VaultContent } from "../ports.ts";
import { type DecodeOptions, decodeBatch, placeVaults } from "../protocol/batch-decoder.ts";
import { BatchTree } from "../protocol/batch-tree.ts";
import { keccak256 } from "../protocol/hash.ts";
import { bytesToHex } from "../protocol/hex.ts";
import { batchRoot, compareAssets, kindOf, manifestRoot } from "../protocol/manifest.ts";
import type { BatchVaultProof } from "../protocol/proof.ts";
import { proveVault } from "../protocol/proof.ts";
import { unpackVaultId, vaultLeaves } from "../protocol/vault.ts";

/** A batch, derived from its data and its place. */
export interface DerivedBatch {
  readonly dataHash: Hash;
  /** The batch's manifest. */
  readonly assets: readonly AssetId[];
  /** Root of the vault tree. */
  readonly content: Hash;
  readonly batchRoot: Hash;
  readonly vaultCount: number;
  /** Places in the manifest of the assets that L1 has left out; their leaves there are zero. */
  readonly leftOut: readonly number[];
  /** In slot order; null for a void slot, and for a vault of an asset that L1 has left out. */
  readonly slots: readonly (VaultContent | null)[];
  readonly tree: BatchTree;
}

/** Options of {@link deriveBatch}. */
export interface DeriveOptions extends Pick<DecodeOptions, "standardOf"> {
  /** Places in the manifest of the assets that L1 has left out; default none. */
  readonly leftOut?: readonly number[];
}

/** Derives a batch from its data. Throws `BatchDataError`, with `standardOf` also for assets that L1 refuses. */
export function deriveBatch(
  mode: Mode,
  batchNumber: number,
  data: Uint8Array,
  { leftOut = [], ...options }: DeriveOptions = {},
): DerivedBatch {
  const { slots: entries, assets } = decodeBatch(data, options);
  const vaults = placeVaults(entries, mode, batchNumber);
  const tree = new BatchTree(vaultLeaves(vaults));
  const content = bytesToHex(tree.root);
  const unpaid = assets.filter((_, place) => leftOut.includes(place));
  const pays = (vault: VaultContent) => !unpaid.some((asset) => compareAssets(asset, vault) === 0);
  const slots = unpaid.length === 0 ? vaults : vaults.map((vault) => (vault !== null && pays(vault) ? vault : null));
  return {
    dataHash: bytesToHex(keccak256(data)),
    assets,
    content,
    batchRoot: batchRoot(kindOf(mode), manifestRoot(assets, leftOut), content),
    leftOut,
    vaultCount: slots.length,
    slots,
    tree,
  };
}

/** The vaults of a batch, without void slots. */
export function vaultsOf({ slots }: DerivedBatch): VaultContent[] {
  return slots.filter((vault) => vault !== null);
}

/** The vault at its slot. Throws `vault_not_found` for a void or missing slot. */
export function vaultIn({ slots }: DerivedBatch, vaultId: VaultId): VaultContent {
  const vault = slots[unpackVaultId(vaultId).slot] ?? null;
  if (vault === null) throw new MintmarkError("vault_not_found", `The batch holds no vault ${vaultId}.`);
  return vault;
}

/** The proof of a vault in a committed batch, verified before return. Throws as {@link vaultIn}. */
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

/** Whether the derived batch matches a claim, or L1's record. */
export function isBatch(
  batch: DerivedBatch,
  claim: Pick<DerivedBatch, "dataHash" | "batchRoot" | "vaultCount">,
): boolean {
  const { dataHash, batchRoot, vaultCount } = claim;
  return batch.dataHash === dataHash && batch.batchRoot === batchRoot && batch.vaultCount === vaultCount;
}
