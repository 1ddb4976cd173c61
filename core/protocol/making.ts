import { invalid } from "../errors.ts";
import type { Hash } from "../model.ts";
import type { BatchHeader, MadeVault } from "../ports.ts";
import { BatchTree } from "./batch-tree.ts";
import { bytesToHex, HASH_BYTES, unpackHashes } from "./hex.ts";
import { batchRoot, kindOf, manifestLeaf, pathIn, rootOfLeaves } from "./manifest.ts";
import type { BatchVaultProof } from "./proof.ts";
import { packVaultId } from "./vault.ts";
import { vaultLeaf } from "./words.ts";

/** The vaults that L1 made at once, docs/protocol.md 11. */
export interface Making {
  readonly chainId: bigint;
  /** 1 to 2^42 - 1. */
  readonly making: number;
  /** 1 to 256, in the order of slots. */
  readonly vaults: readonly MadeVault[];
}

/** A making with the number of commits before it, which its header has. */
export interface CountedMaking extends Making {
  readonly sequence: bigint;
}

/** The proof of a made vault, with L1's header of the making. */
export type MadeVaultProof = BatchVaultProof & { readonly header: BatchHeader };

/** The vaults of a making, its trees, and its root. Throws `validation_failed` for none. */
function treesOf({ chainId, making, vaults }: Making) {
  const types = [...new Set(vaults.map(({ assetType }) => assetType))];
  const manifest = types.map((assetType) => manifestLeaf({ chainId, assetType }));
  const contents = vaults.map((vault, slot) => {
    const vaultId = packVaultId({ mode: "made", batchNumber: making, slot });
    return { ...vault, vaultId, chainId };
  });
  const leaves = new Uint8Array(vaults.length * HASH_BYTES);
  for (const [slot, vault] of contents.entries())
    leaves.set(vaultLeaf(vault, types.indexOf(vault.assetType)), slot * HASH_BYTES);
  const tree = new BatchTree(leaves);
  const root = batchRoot(kindOf("made"), rootOfLeaves(manifest), bytesToHex(tree.root));
  return { types, manifest, contents, tree, root };
}

/**
 * The batch root of a making, which L1's event `Made` tells too.
 *
 * @throws MintmarkError `validation_failed` for vaults that L1 does not make
 *
 * @example
 * const isWhole = makingRoot({ chainId, making: 7, vaults }) === event.batchRoot;
 */
export function makingRoot(making: Making): Hash {
  return treesOf(making).root;
}

/**
 * The proof of a made vault, from the vaults that L1 told of.
 *
 * @throws MintmarkError `validation_failed` when the making has no such slot
 *
 * @example
 * const proof = proveMadeVault({ chainId, making: 7, vaults, sequence }, 0);
 * verifyVaultProof(event.batchRoot, proof); // true
 */
export function proveMadeVault(making: CountedMaking, slot: number): MadeVaultProof {
  const { types, manifest, contents, tree, root: batchRoot } = treesOf(making);
  const vault = contents[slot];
  if (vault === undefined) throw invalid(`making ${making.making} has no slot ${slot}`);
  const assetPath = pathIn(manifest, types.indexOf(vault.assetType));
  const siblings = unpackHashes(tree.siblings(slot));
  const leaf = bytesToHex(tree.leaf(slot));
  const vaultCount = tree.count;
  const header = { batchRoot, vaultCount, committedAt: 0n, sequence: making.sequence };
  return { vault, vaultCount, siblings, assetPath, leaf, batchRoot, header };
}
