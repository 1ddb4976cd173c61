import { MintmarkError } from "../errors.ts";
import { type Hash, MAX_BATCH_VAULTS } from "../model.ts";
import type { BatchHeader, Settlement, VaultContent } from "../ports.ts";
import type { BatchTree } from "./batch-tree.ts";
import { requireInteger } from "./bounds.ts";
import type { StateRoots } from "./commitment.ts";
import { stateCommitment, stateLeaf } from "./commitment.ts";
import { foldPath } from "./hash.ts";
import { bytesToHex, equalBytes, HASH_BYTES, hexToBytes, packHashes, unpackHashes } from "./hex.ts";
import { MAX_HEIGHT, treeHeight } from "./merkle.ts";
import { multiproofHolds, multiproofSiblings } from "./multiproof.ts";
import { holds } from "./refusal.ts";
import { unpackVaultId, vaultLeaf, vaultLeaves } from "./vault.ts";

/** Shows that a batch holds a vault. */
export interface VaultProof {
  readonly vault: VaultContent;
  /** Slots of the batch; fixes the number of siblings. */
  readonly vaultCount: number;
  /** ceil(log2 vaultCount), from the leaf upwards. */
  readonly siblings: readonly Hash[];
}

/** The way on from a batch root to the state commitment. */
export interface StatePath {
  readonly dataHash: Hash;
  /** 32 siblings of the batch in its mode's state tree. */
  readonly siblings: readonly Hash[];
  /** Root of the other mode's state tree. */
  readonly otherRoot: Hash;
  readonly countValidium: number;
  readonly countRollup: number;
}

/** Shows that a batch holds many vaults, shared siblings once. */
export interface VaultMultiproof {
  /** Strictly ascending in their slots, all of one batch. */
  readonly vaults: readonly VaultContent[];
  readonly vaultCount: number;
  /** Those that cannot be computed from the vaults, level by level from the leaves, left to right. */
  readonly siblings: readonly Hash[];
}

/**
 * The proof of a vault in its batch, verified before it is returned.
 *
 * @throws MintmarkError `validation_failed` when the tree's leaf at the vault's slot is not the vault's
 */
export function proveVault(tree: BatchTree, vault: VaultContent): VaultProof {
  const siblings = unpackHashes(tree.siblings(unpackVaultId(vault.vaultId).slot));
  const proof = { vault, vaultCount: tree.count, siblings };
  if (!verifyVaultProof(bytesToHex(tree.root), proof)) throw notInBatch();
  return proof;
}

/**
 * Whether the vault stands at its own slot of the batch with that root; anything malformed is false.
 *
 * @example
 * const proof = await engine.proofs.vault(vaultId);
 * verifyVaultProof(batchRootFromL1, proof); // true
 */
export function verifyVaultProof(batchRoot: Hash, proof: VaultProof): boolean {
  return holds(() => equalBytes(batchRootOf(proof), hexToBytes(batchRoot, HASH_BYTES)));
}

/** Whether the vault stands in a batch of the state that a settlement contract's commitment stands for. */
export function verifyVaultInState(
  settlement: Pick<Settlement, "chainId" | "contract">,
  commitment: Hash,
  proof: VaultProof,
  path: StatePath,
): boolean {
  return holds(() => {
    const { mode, batchNumber } = unpackVaultId(proof.vault.vaultId);
    const { dataHash, countValidium, countRollup } = path;
    requireInteger("number of siblings", path.siblings.length, MAX_HEIGHT, MAX_HEIGHT);
    requireInteger("batchNumber", batchNumber, 0, (mode === "validium" ? countValidium : countRollup) - 1);
    const leaf = stateLeaf({
      batchNumber,
      vaultCount: proof.vaultCount,
      dataHash,
      batchRoot: bytesToHex(batchRootOf(proof)),
    });
    const root = bytesToHex(foldPath(hexToBytes(leaf), batchNumber, packHashes(path.siblings)));
    const roots =
      mode === "validium"
        ? { rootValidium: root, rootRollup: path.otherRoot }
        : { rootValidium: path.otherRoot, rootRollup: root };
    return stateCommitment(settlement, { ...roots, countValidium, countRollup }) === commitment.toLowerCase();
  });
}

/**
 * One proof for many vaults of a batch, verified before it is returned.
 *
 * @param vaults - strictly ascending in their slots
 * @throws MintmarkError `validation_failed` when they are not ascending or not in the tree
 */
export function proveVaults(tree: BatchTree, vaults: readonly VaultContent[]): VaultMultiproof {
  const slots = vaults.map((vault) => unpackVaultId(vault.vaultId).slot);
  const proof = { vaults, vaultCount: tree.count, siblings: unpackHashes(multiproofSiblings(tree, slots)) };
  if (!verifyVaultMultiproof(bytesToHex(tree.root), proof)) throw notInBatch();
  return proof;
}

/** Whether all vaults stand at their own slots of the batch with that root; anything malformed is false. */
export function verifyVaultMultiproof(batchRoot: Hash, proof: VaultMultiproof): boolean {
  return holds(() => {
    const { vaults, vaultCount, siblings } = proof;
    return multiproofHolds(
      hexToBytes(batchRoot, HASH_BYTES),
      vaultCount,
      vaults.map((vault) => unpackVaultId(vault.vaultId).slot),
      vaultLeaves(vaults),
      packHashes(siblings),
    );
  });
}

/** The batch root that a vault proof leads to. The leaf binds the vault's own place, so no position is taken from elsewhere. */
function batchRootOf({ vault, vaultCount, siblings }: VaultProof): Uint8Array {
  const { slot } = unpackVaultId(vault.vaultId);
  requireInteger("vaultCount", vaultCount, 1, MAX_BATCH_VAULTS);
  requireInteger("slot", slot, 0, vaultCount - 1);
  requireInteger("number of siblings", siblings.length, treeHeight(vaultCount), treeHeight(vaultCount));
  const root = foldPath(vaultLeaf(vault), slot, packHashes(siblings));
  return root;
}

function notInBatch(): MintmarkError {
  return new MintmarkError("validation_failed", "the batch does not hold this vault at its slot");
}

/** A vault's path to its batch's root; `header` is null until L1 has committed the batch. */
export interface BatchVaultProof {
  readonly vault: VaultContent;
  readonly vaultCount: number;
  readonly batchRoot: Hash;
  readonly leaf: Hash;
  /** From the leaf upwards, ceil(log2 vaultCount) of them. */
  readonly siblings: readonly Hash[];
  readonly header: BatchHeader | null;
}

/** The append-only state over the first batches of each mode. */
export interface EngineState extends StateRoots {
  readonly commitment: Hash;
}

/** A vault's path all the way to a state commitment: `verifyVaultInState` of `mintmark/protocol` checks it. */
export interface VaultStateProof {
  readonly proof: BatchVaultProof;
  readonly path: StatePath;
  readonly commitment: Hash;
}
