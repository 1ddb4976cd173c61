import { type Hash, MODES } from "../../../../core/model.ts";
import {
  batchHeaderHash,
  emptyHistory,
  nextHistory,
  stateCommitment,
  stateLeaf,
} from "../../../../core/protocol/commitment.ts";
import { type ConsistencyProof, proveBatch, proveConsistency } from "../../../../core/protocol/consistency.ts";
import { bytesToHex, hexToBytes } from "../../../../core/protocol/hex.ts";
import { StateHistory, StateTree } from "../../../../core/protocol/state-tree.ts";
import { derivedHash, SETTLEMENT } from "./derive.ts";

const LEAVES = 19;
const PAIRS: readonly (readonly [number, number])[] = [
  [0, 0],
  [0, 1],
  [0, 19],
  [1, 2],
  [1, 19],
  [4, 8],
  [7, 8],
  [8, 9],
  [8, 16],
  [11, 13],
  [15, 17],
  [16, 19],
  [18, 19],
  [19, 19],
];

/** Roots, frontiers, batch proofs and consistency proofs of one growing state tree. */
export function stateTreeVectors() {
  const leaves = Array.from({ length: LEAVES }, (_, n) => derivedHash(`state leaf ${n}`));
  const tree = new StateTree();
  const history = new StateHistory();
  const states = [{ count: 0, root: bytesToHex(tree.root), frontier: [] as Hash[] }];
  for (const leaf of leaves) {
    tree.append(hexToBytes(leaf));
    history.append(hexToBytes(leaf));
    states.push({ count: tree.count, root: bytesToHex(tree.root), frontier: tree.frontier.map(bytesToHex) });
  }
  const rootAt = (count: number) => bytesToHex(history.root(count));
  return {
    description:
      "One state tree as it grows (docs/protocol.md 3, 7). `states`: count, root and frontier (completed left subtrees, the lowest first) after each append. " +
      "`batchProofs` lead from the root at `batchNumber` to the next one. `consistencyProofs`: proof is null when the counts are equal. `refused`: nothing may accept one.",
    leaves,
    states,
    batchProofs: [0, 1, 2, 7, 8, 15, 16, 18].map((batchNumber) => ({
      oldRoot: rootAt(batchNumber),
      newRoot: rootAt(batchNumber + 1),
      ...proveBatch(history, batchNumber),
    })),
    consistencyProofs: PAIRS.map(([oldCount, newCount]) => ({
      oldCount,
      newCount,
      oldRoot: rootAt(oldCount),
      newRoot: rootAt(newCount),
      proof: proveConsistency(history, oldCount, newCount),
    })),
    refused: hostileConsistencyProofs(history),
  };
}

/** A shrunken, forked, padded or relabelled history. */
function hostileConsistencyProofs(history: StateHistory) {
  const [oldCount, newCount] = [5, 12];
  const rootAt = (count: number) => bytesToHex(history.root(count));
  const honest = {
    oldCount,
    newCount,
    oldRoot: rootAt(oldCount),
    newRoot: rootAt(newCount),
    proof: proveConsistency(history, oldCount, newCount),
  };
  const forkedHistory = new StateHistory();
  for (let n = 0; n < newCount; n++) {
    forkedHistory.append(hexToBytes(derivedHash(n === 2 ? "another past" : `state leaf ${n}`)));
  }
  const proof = honest.proof as NonNullable<ConsistencyProof>;
  const refused = (name: string, change: Partial<typeof honest>) => ({ name, ...honest, ...change });
  return [
    refused("no proof of growth", { proof: null }),
    refused("equal counts, another root", { newCount: oldCount, proof: null }),
    refused("equal counts with a proof", { newCount: oldCount, newRoot: honest.oldRoot }),
    refused("a shrunken tree", {
      oldCount: newCount,
      newCount: oldCount,
      oldRoot: honest.newRoot,
      newRoot: honest.oldRoot,
    }),
    refused("a forked past", {
      newRoot: bytesToHex(forkedHistory.root()),
      proof: proveConsistency(forkedHistory, oldCount, newCount),
    }),
    refused("an old count too small", { oldCount: oldCount - 1 }),
    refused("an old count too large", { oldCount: oldCount + 1 }),
    refused("a new count too small", { newCount: newCount - 1 }),
    refused("another leaf", { proof: { ...proof, leaf: derivedHash("another leaf") } }),
    refused("the old path truncated", { proof: { ...proof, atOld: proof.atOld.slice(0, -1) } }),
    refused("the new path truncated", { proof: { ...proof, atNew: proof.atNew.slice(0, -1) } }),
    refused("the old path extended", { proof: { ...proof, atOld: [...proof.atOld, derivedHash("more")] } }),
    refused("the new path extended", { proof: { ...proof, atNew: [...proof.atNew, derivedHash("more")] } }),
    refused("paths exchanged", { proof: { ...proof, atOld: proof.atNew, atNew: proof.atOld } }),
    refused("the past of another pair", { proof: proveConsistency(history, oldCount, newCount + 1) }),
  ];
}

/** State leaves, state commitments and batch headers. */
export function commitmentVectors() {
  const stateLeaves = [
    [0, 1],
    [7, 1000],
    [0xffff_ffff, 1 << 20],
  ].map(([batchNumber = 0, vaultCount = 0]) => {
    const content = {
      batchNumber,
      vaultCount,
      dataHash: derivedHash(`data of ${batchNumber}`),
      batchRoot: derivedHash(`root of ${batchNumber}`),
    };
    return { ...content, stateLeaf: stateLeaf(content) };
  });
  const commitments = [
    [0, 0],
    [1, 0],
    [12, 4_000_000_000],
  ].map(([countValidium = 0, countRollup = 0]) => {
    const roots = {
      rootValidium: derivedHash(`validium at ${countValidium}`),
      rootRollup: derivedHash(`rollup at ${countRollup}`),
      countValidium,
      countRollup,
    };
    return { settlement: SETTLEMENT, ...roots, commitment: stateCommitment(SETTLEMENT, roots) };
  });
  const histories = [];
  let history = emptyHistory(SETTLEMENT);
  for (const [i, { stateLeaf: leaf }] of stateLeaves.entries()) {
    for (const mode of MODES) {
      const next = nextHistory(history, mode, leaf);
      histories.push({
        history,
        mode: MODES.indexOf(mode),
        stateLeaf: leaf,
        commits: 2 * i + MODES.indexOf(mode),
        next,
      });
      history = next;
    }
  }
  const headers = [
    [1, 0n, 0n],
    [1 << 20, (1n << 64n) - 1n, (1n << 64n) - 1n],
  ].map(([vaultCount, committedAt, sequence]) => {
    const header = {
      batchRoot: derivedHash(`header ${vaultCount}`),
      vaultCount: Number(vaultCount),
      committedAt: BigInt(committedAt ?? 0),
      sequence: BigInt(sequence ?? 0),
    };
    return { ...header, headerHash: batchHeaderHash(header) };
  });
  return {
    description: "State leaves, state commitments, histories and batch headers (docs/protocol.md 3).",
    stateLeaves,
    commitments,
    emptyHistory: { settlement: SETTLEMENT, history: emptyHistory(SETTLEMENT) },
    histories,
    headers,
  };
}
