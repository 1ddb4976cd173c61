import { BatchTree } from "../core/protocol/batch-tree.ts";
import { stateLeaf } from "../core/protocol/commitment.ts";
import { bytesToHex, hashAt, hexToBytes } from "../core/protocol/hex.ts";
import { buildLevels, pathHolds, siblingsIn } from "../core/protocol/merkle.ts";
import { StateHistory, StateTree } from "../core/protocol/state-tree.ts";
import { BATCH, check, HEIGHT, LEAVES, leafBytes, leafList, PREFILLED, type TreeSubject } from "./tree-subjects.ts";

/** This project's trees as the engine uses them: a tree a batch, its root in a leaf of the state tree. */
export function ourTrees(): TreeSubject {
  const leaves = leafList(LEAVES);
  const flat = Uint8Array.from(Buffer.concat(leaves));
  const dataHash = bytesToHex(leafBytes(0));
  return {
    label: "Mintmark",
    note: "a tree a batch under a state tree of height 32; flat arrays, keccak-256",
    ours: true,
    batches: () => {
      const state = new StateTree();
      return (batch) => {
        const tree = new BatchTree(flat.subarray(batch * BATCH * 32, (batch + 1) * BATCH * 32));
        const batchRoot = bytesToHex(tree.root);
        state.append(hexToBytes(stateLeaf({ batchNumber: batch, vaultCount: BATCH, dataHash, batchRoot })));
        check(state.root.length === 32, "state root");
      };
    },
    growing: () => {
      const history = new StateHistory(flat.subarray(0, PREFILLED * 32));
      return {
        add: (leaf) => history.append(leafBytes(leaf)),
        checkRoot: () => check(history.root().length === 32, "state root"),
      };
    },
    proofs: () => {
      const levels = buildLevels(flat, 0, HEIGHT);
      return (leaf) => check(siblingsIn(levels, leaf, 0).length === HEIGHT * 32, "siblings");
    },
    verifiedProofs: () => {
      const levels = buildLevels(flat, 0, HEIGHT);
      const root = levels.at(-1) ?? flat;
      return (leaf) => check(pathHolds(root, hashAt(flat, leaf), leaf, siblingsIn(levels, leaf, 0)), "proof");
    },
  };
}
