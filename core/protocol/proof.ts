import { invalid, type MintmarkError } from "../errors.ts";
import { type Hash, MAX_BATCH_VAULTS, type Series } from "../model.ts";
import type {
  AssetId,
  BatchHeader,
  PortalIdentity,
  ProvenVault,
  VaultContent,
  VaultProof,
} from "../ports.ts";
import type { BatchTree } from "./batch-tree.ts";
import { holds, requireInteger } from "./bounds.ts";
import type { StateRoots } from "./commitment.ts";
import { stateCommitment, stateLeaf } from "./commitment.ts";
import { bytesToHex, foldPath, HASH_BYTES, hexToBytes, packHashes, unpackHashes } from "./hex.ts";
import * as manifests from "./manifest.ts";
import { MAX_HEIGHT, treeHeight } from "./merkle.ts";
import { multiproofRoot, multiproofSiblings } from "./multiproof.ts";
import { openedRoot } from "./opening.ts";
import { unpackBatchVaultId, unpackVaultId } from "./vault.ts";
import { vaultLeaf } from "./words.ts";

/** The tree of a batch's vaults, and the assets of its manifest. */
export interface ProvableBatch {
  readonly tree: BatchTree;
  /** Ascending, as in the batch's data. */
  readonly assets: readonly AssetId[];
  /** Indexes of the assets that L1 has left out. */
  readonly leftOut?: readonly number[];
}

/** The path from a batch root to the state commitment. */
export interface StatePath {
  readonly dataHash: Hash;
  /** 32 siblings of the batch in its mode's state tree. */
  readonly siblings: readonly Hash[];
  /** Root of the other mode's state tree. */
  readonly otherRoot: Hash;
  readonly countValidium: number;
  readonly countRollup: number;
}

/** Proves that a batch holds many vaults. Shared siblings occur once. */
export interface VaultMultiproof {
  /** Strictly ascending by slot, all of one batch. */
  readonly vaults: readonly VaultContent[];
  readonly vaultCount: number;
  /**
   * The siblings that the vaults do not determine, level by level from the leaves, left to right.
   */
  readonly siblings: readonly Hash[];
  /** All leaves of the batch's manifest; zero for an asset left out. */
  readonly manifest: readonly Hash[];
}

/**
 * The proof of a vault in its batch, verified before return.
 *
 * @throws MintmarkError `validation_failed` when the tree has another leaf at the vault's slot, or
 *   the manifest leaves its asset out
 *
 * @example
 * const proof = proveVault({ tree, assets }, vault); verifyVaultProof(batchRoot("validium",
 * manifestRoot(assets), bytesToHex(tree.root)), proof); // true
 */
export function proveVault(batch: ProvableBatch, vault: VaultContent): VaultProof {
  const { tree, assets, leftOut } = batch;
  const { mode, slot } = unpackVaultId(vault.vaultId);
  const assetPath = manifests.manifestPath(assets, vault, leftOut);
  const proof = {
    vault,
    vaultCount: tree.count,
    siblings: unpackHashes(tree.siblings(slot)),
    assetPath,
  };
  if (!verifyTreeProof(rootOf(batch, mode), proof)) throw notInBatch();
  return proof;
}

function rootOf({ tree, assets, leftOut }: ProvableBatch, mode: Series): Hash {
  return manifests.batchRoot(
    manifests.kindOf(mode),
    manifests.manifestRoot(assets, leftOut),
    bytesToHex(tree.root),
  );
}

/**
 * Whether the batch with this root is a tree, as all but those in blobs are, and holds the vault at
 * its slot and its asset in the manifest. False for a malformed proof. A page that uses this alone
 * has no code of pairings.
 *
 * @example
 * verifyTreeProof(batchRootFromL1, proof); // true
 */
export function verifyTreeProof(expectedRoot: Hash, proof: VaultProof): boolean {
  return holds(() => treeRootOf(proof) === expectedRoot.toLowerCase());
}

/**
 * Whether the batch with this root holds the vault at its slot and its asset in the manifest. False
 * for a malformed proof. A vault in blobs takes about 0.1 s for each of its elements.
 *
 * @example
 * const proof = await engine.proofs.vault(vaultId);
 * verifyVaultProof(batchRootFromL1, proof); // true
 */
export function verifyVaultProof(expectedRoot: Hash, proof: VaultProof): boolean {
  return leads(proof, (root) => root === expectedRoot.toLowerCase());
}

/**
 * Whether the state behind a settlement contract's commitment holds the vault.
 *
 * @example
 * const { proof, path, commitment } = await engine.proofs.vaultState(vaultId);
 * verifyVaultInState(engine.settlement, commitment, proof, path); // true
 */
export function verifyVaultInState(
  settlement: PortalIdentity,
  commitment: Hash,
  proof: VaultProof,
  path: StatePath,
): boolean {
  return leads(proof, (batchRoot) => {
    const { mode, batchNumber } = unpackBatchVaultId(proof.vault.vaultId);
    const { dataHash, countValidium, countRollup } = path;
    requireInteger("number of siblings", path.siblings.length, MAX_HEIGHT, MAX_HEIGHT);
    requireInteger(
      "batchNumber",
      batchNumber,
      0,
      (mode === "validium" ? countValidium : countRollup) - 1,
    );
    const leaf = stateLeaf({ batchNumber, vaultCount: proof.vaultCount, dataHash, batchRoot });
    const root = bytesToHex(foldPath(hexToBytes(leaf), batchNumber, packHashes(path.siblings)));
    const roots =
      mode === "validium"
        ? { rootValidium: root, rootRollup: path.otherRoot }
        : { rootValidium: path.otherRoot, rootRollup: root };
    return (
      stateCommitment(settlement, { ...roots, countValidium, countRollup }) ===
      commitment.toLowerCase()
    );
  });
}

/**
 * One proof for many vaults of a batch, verified before return.
 *
 * @param vaults - strictly ascending by slot
 * @throws MintmarkError `validation_failed` when they do not ascend or are not in the tree
 *
 * @example
 * const proof = proveVaults({ tree, assets }, vaults);
 * verifyVaultMultiproof(root, proof); // true
 */
export function proveVaults(
  batch: ProvableBatch,
  vaults: readonly VaultContent[],
): VaultMultiproof {
  const { tree, assets, leftOut } = batch;
  const places = vaults.map((vault) => unpackVaultId(vault.vaultId));
  const siblings = multiproofSiblings(
    tree,
    places.map(({ slot }) => slot),
  );
  const manifest = manifests.manifestLeaves(assets, leftOut);
  const proof = { vaults, vaultCount: tree.count, siblings: unpackHashes(siblings), manifest };
  if (!verifyVaultMultiproof(rootOf(batch, places[0]?.mode ?? "validium"), proof))
    throw notInBatch();
  return proof;
}

/**
 * Whether the batch with this root holds all vaults at their slots. False for a malformed proof.
 *
 * @example
 * if (!verifyVaultMultiproof(batchRootFromL1, proof)) throw new Error("the batch lacks a vault");
 */
export function verifyVaultMultiproof(expectedRoot: Hash, proof: VaultMultiproof): boolean {
  return holds(() => {
    const { vaults, vaultCount, siblings, manifest } = proof;
    const places = vaults.map((vault) => unpackVaultId(vault.vaultId));
    const slots = places.map(({ slot }) => slot);
    const named = manifest.map((leaf) => leaf.toLowerCase());
    const leaves = new Uint8Array(vaults.length * HASH_BYTES);
    for (const [i, vault] of vaults.entries())
      leaves.set(vaultLeaf(vault, named.indexOf(manifests.manifestLeaf(vault))), i * HASH_BYTES);
    const content = multiproofRoot(vaultCount, slots, leaves, packHashes(siblings));
    if (content === null) return false;
    const { mode } = places[0]!;
    const root = manifests.batchRoot(
      manifests.kindOf(mode),
      manifests.rootOfLeaves(manifest),
      bytesToHex(content),
    );
    return root === expectedRoot.toLowerCase();
  });
}

/**
 * Whether the proof leads to a wanted batch root. The root holds the batch's kind, so only one of
 * the ways can.
 */
function leads(proof: VaultProof, isWanted: (batchRoot: Hash) => boolean): boolean {
  const isOpened = () => {
    const { root, opens } = openedRoot(proof);
    return isWanted(root) && opens();
  };
  return holds(() => isWanted(treeRootOf(proof))) || holds(isOpened);
}

/**
 * The batch root of a vault in a tree. The leaf binds the vault's place, so the position comes from
 * the vault id.
 */
function treeRootOf({ vault, vaultCount, siblings, assetPath }: VaultProof): Hash {
  const { mode, slot } = unpackVaultId(vault.vaultId);
  requireInteger("vaultCount", vaultCount, 1, MAX_BATCH_VAULTS);
  requireInteger("slot", slot, 0, vaultCount - 1);
  requireInteger(
    "number of siblings",
    siblings.length,
    treeHeight(vaultCount),
    treeHeight(vaultCount),
  );
  const content = foldPath(vaultLeaf(vault, assetPath.index), slot, packHashes(siblings));
  return manifests.batchRoot(
    manifests.kindOf(mode),
    manifests.manifestRootOf(vault, assetPath),
    bytesToHex(content),
  );
}

function notInBatch(): MintmarkError {
  return invalid("the batch does not hold this vault at its slot");
}

/**
 * A vault's path to its batch's root; `header` is null until L1 has committed the batch. For a
 * vault that transfers made, the path of the minted vault, and the transfers since; `header` is
 * null until L1 has committed them, too.
 */
export interface BatchVaultProof extends VaultProof, Pick<ProvenVault, "hops" | "refutation"> {
  readonly batchRoot: Hash;
  readonly leaf: Hash;
  readonly header: BatchHeader | null;
}

/** The append-only state over the batches of both modes. */
export interface EngineState extends StateRoots {
  readonly commitment: Hash;
}

/**
 * The proof of a vault up to a state commitment: `verifyVaultInState` of `mintmark/protocol` checks
 * it.
 */
export interface VaultStateProof {
  readonly proof: BatchVaultProof;
  readonly path: StatePath;
  readonly commitment: Hash;
}
