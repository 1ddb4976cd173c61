import type { Hash, Mode } from "../model.ts";
import type { PortalIdentity } from "../ports.ts";
import { holds, invariant, requireInteger } from "./bounds.ts";
import { countOf, type StateRoots, stateCommitment } from "./commitment.ts";
import {
  bytesToHex,
  equalBytes,
  foldPath,
  HASH_BYTES,
  hexToBytes,
  packHashes,
  unpackHashes,
} from "./hex.ts";
import { MAX_HEIGHT, pathHolds, zeroRoot } from "./merkle.ts";
import { MAX_STATE_LEAVES, type StateTree } from "./state-tree.ts";

/**
 * Proves an append: with the same siblings, the zero leaf gives the old root, the batch's leaf the
 * new one.
 */
export interface BatchProof {
  readonly batchNumber: number;
  readonly stateLeaf: Hash;
  /** 32, from the leaf upwards. */
  readonly siblings: readonly Hash[];
}

/**
 * Proves that a tree of `newCount` leaves begins with the `oldCount` leaves of an older one; null
 * if equal.
 */
export type ConsistencyProof = null | {
  /** The new tree's leaf at the old count. */
  readonly leaf: Hash;
  /** The new tree's 32 siblings at the old count. */
  readonly atOld: readonly Hash[];
  /** The new tree's 32 siblings at the new count. */
  readonly atNew: readonly Hash[];
};

/** One state tree at one time. */
export interface TreeState {
  readonly root: Hash;
  readonly count: number;
}

/**
 * Proves that batch `batchNumber` was appended to the tree of the batches before it.
 *
 * @throws MintmarkError `validation_failed` when there is no such batch
 *
 * @example
 * const proof = proveBatch(history, 12);
 * verifyBatchProof(bytesToHex(history.root(12)), bytesToHex(history.root(13)), proof); // true
 */
export function proveBatch(history: StateTree, batchNumber: number): BatchProof {
  const stateLeaf = history.leaf(batchNumber);
  const siblings = history.siblings(batchNumber, batchNumber);
  const proof = { batchNumber, stateLeaf: bytesToHex(stateLeaf), siblings: unpackHashes(siblings) };
  const [before, after] = [history.root(batchNumber), history.root(batchNumber + 1)];
  invariant(
    verifyBatchProof(bytesToHex(before), bytesToHex(after), proof),
    `a wrong proof of batch ${batchNumber}`,
  );
  return proof;
}

/**
 * Whether the proof's leaf leads from the old root to the new one. Does not prove that L1 accepted
 * it.
 *
 * @example
 * if (!verifyBatchProof(rootBefore, rootAfter, proof)) throw new Error("not an append");
 */
export function verifyBatchProof(oldRoot: Hash, newRoot: Hash, proof: BatchProof): boolean {
  return holds(() => {
    requireInteger("batchNumber", proof.batchNumber, 0, MAX_STATE_LEAVES - 1);
    const siblings = packSiblings(proof.siblings);
    return (
      pathHolds(hexToBytes(oldRoot, HASH_BYTES), zeroRoot(0), proof.batchNumber, siblings) &&
      pathHolds(
        hexToBytes(newRoot, HASH_BYTES),
        hexToBytes(proof.stateLeaf, HASH_BYTES),
        proof.batchNumber,
        siblings,
      )
    );
  });
}

/**
 * Proves that the tree at `newCount` extends the tree at `oldCount`.
 *
 * @throws MintmarkError `validation_failed` unless `oldCount <= newCount <= history.count`
 *
 * @example
 * const proof = proveConsistency(history, older.count, newer.count);
 * verifyConsistency(older, newer, proof); // true
 */
export function proveConsistency(
  history: StateTree,
  oldCount: number,
  newCount: number = history.count,
): ConsistencyProof {
  requireInteger("newCount", newCount, 0, history.count);
  requireInteger("oldCount", oldCount, 0, newCount);
  if (oldCount === newCount) return null;
  const proof = {
    leaf: bytesToHex(history.leaf(oldCount)),
    atOld: unpackHashes(history.siblings(oldCount, newCount)),
    atNew: unpackHashes(history.siblings(newCount, newCount)),
  };
  const at = (count: number): TreeState => ({ count, root: bytesToHex(history.root(count)) });
  const isRight = verifyConsistency(at(oldCount), at(newCount), proof);
  invariant(isRight, `a wrong consistency proof from ${oldCount} to ${newCount}`);
  return proof;
}

/**
 * Whether a later state tree begins with all leaves of an earlier one. `mask(s, p)` replaces each
 * right sibling on the path of p by a zero subtree. Then `oldRoot = fold(0, m, mask(atOld, m))` and
 * `newRoot = fold(leaf, m, atOld) = fold(0, n, mask(atNew, n))`. A root alone does not fix its
 * count, since an empty position reads like a zero leaf. Take both from a commitment (see {@link
 * verifyStateConsistency}).
 *
 * @example
 * verifyConsistency({ root: oldRoot, count: 12 }, { root: newRoot, count: 40 }, proof); // true
 */
export function verifyConsistency(
  older: TreeState,
  newer: TreeState,
  proof: ConsistencyProof,
): boolean {
  return holds(() => {
    requireInteger("count", newer.count, 0, MAX_STATE_LEAVES);
    requireInteger("older count", older.count, 0, newer.count);
    const oldRoot = hexToBytes(older.root, HASH_BYTES);
    const newRoot = hexToBytes(newer.root, HASH_BYTES);
    if (older.count === newer.count) return proof === null && equalBytes(oldRoot, newRoot);
    if (proof === null) return false;
    const atOld = packSiblings(proof.atOld);
    const atNew = packSiblings(proof.atNew);
    return (
      emptyFromHolds(oldRoot, older.count, atOld) &&
      pathHolds(newRoot, hexToBytes(proof.leaf, HASH_BYTES), older.count, atOld) &&
      emptyFromHolds(newRoot, newer.count, atNew)
    );
  });
}

/** Consistency proofs of both modes. */
export interface StateConsistencyProof {
  readonly validium: ConsistencyProof;
  readonly rollup: ConsistencyProof;
}

/**
 * Whether a later state commitment of a settlement contract extends an earlier one in both modes.
 *
 * @example
 * const { older, newer, proof } = await engine.proofs.consistency(countsOfLastWeek);
 * const at = (state: EngineState) => ({ commitment: state.commitment, state });
 * verifyStateConsistency(engine.settlement, at(older), at(newer), proof); // true
 */
export function verifyStateConsistency(
  settlement: PortalIdentity,
  older: { readonly commitment: Hash; readonly state: StateRoots },
  newer: { readonly commitment: Hash; readonly state: StateRoots },
  proof: StateConsistencyProof,
): boolean {
  return holds(
    () =>
      stateCommitment(settlement, older.state) === older.commitment.toLowerCase() &&
      stateCommitment(settlement, newer.state) === newer.commitment.toLowerCase() &&
      verifyConsistency(
        treeOf("validium", older.state),
        treeOf("validium", newer.state),
        proof.validium,
      ) &&
      verifyConsistency(
        treeOf("zk-rollup", older.state),
        treeOf("zk-rollup", newer.state),
        proof.rollup,
      ),
  );
}

function treeOf(mode: Mode, state: StateRoots): TreeState {
  return {
    root: mode === "validium" ? state.rootValidium : state.rootRollup,
    count: countOf(mode, state),
  };
}

/**
 * Whether the root is that of a tree with these left siblings on the path of `count`, and no leaf
 * from `count` on.
 */
function emptyFromHolds(root: Uint8Array, count: number, siblings: Uint8Array): boolean {
  const masked = siblings.slice();
  for (let level = 0; level < MAX_HEIGHT; level++) {
    if (((count >>> level) & 1) === 0) masked.set(zeroRoot(level), level * HASH_BYTES);
  }
  return equalBytes(foldPath(zeroRoot(0), count, masked), root);
}

/** Exactly 32 siblings; any other number is an invalid proof. */
function packSiblings(siblings: readonly Hash[]): Uint8Array {
  requireInteger("number of siblings", siblings.length, MAX_HEIGHT, MAX_HEIGHT);
  return packHashes(siblings);
}
