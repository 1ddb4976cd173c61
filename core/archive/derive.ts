import type { Hash, Mode } from "../model.ts";
import type { VaultContent } from "../ports.ts";
import { type DecodeOptions, decodeBatchData, placeVaults } from "../protocol/batch-decoder.ts";
import { BatchTree } from "../protocol/batch-tree.ts";
import { keccak256 } from "../protocol/hash.ts";
import { bytesToHex } from "../protocol/hex.ts";
import { vaultLeaves } from "../protocol/vault.ts";

/** Everything that follows from a batch's data and its place. */
export interface DerivedBatch {
  readonly dataHash: Hash;
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
  const slots = placeVaults(decodeBatchData(data, options), mode, batchNumber);
  const tree = new BatchTree(vaultLeaves(slots));
  return {
    dataHash: bytesToHex(keccak256(data)),
    batchRoot: bytesToHex(tree.root),
    vaultCount: slots.length,
    slots,
    tree,
  };
}

/** The vaults of a batch, without its void slots. */
export function vaultsOf({ slots }: DerivedBatch): VaultContent[] {
  return slots.filter((vault) => vault !== null);
}
