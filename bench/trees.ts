import { BatchTree } from "../core/protocol/batch-tree.ts";
import { stateLeaf } from "../core/protocol/commitment.ts";
import { bytesToHex, hashAt, hexToBytes } from "../core/protocol/hex.ts";
import { buildLevels, pathHolds, siblingsIn } from "../core/protocol/merkle.ts";
import { StateTree } from "../core/protocol/state-tree.ts";
import { installTools } from "../scripts/build/tools.ts";
import { measuredRows, type Section, type Subject } from "./harness.ts";
import { BATCH, check, LEAVES, leafBytes, leafList, type TreeSubject } from "./tree-subject.ts";

/** Leaves of the tree to which single leaves are added. */
const PREFILLED = 90_000;
/** Height of a tree of 100,000 leaves. */
const HEIGHT = 17;
const PROOFS = 200;

/**
 * This project's trees as the engine uses them: a tree a batch, its root in a leaf of the state
 * tree.
 */
function ourTrees(): TreeSubject {
  const flat = Uint8Array.from(Buffer.concat(leafList(LEAVES)));
  const dataHash = bytesToHex(leafBytes(0));
  const built = () => {
    const levels = buildLevels(flat, 0, HEIGHT);
    return { levels, root: levels.at(-1) ?? flat };
  };
  return {
    label: "Mintmark",
    note: "a tree a batch under a state tree of height 32; flat arrays, keccak-256",
    ours: true,
    batches: () => {
      const state = new StateTree();
      return (batch) => {
        const tree = new BatchTree(flat.subarray(batch * BATCH * 32, (batch + 1) * BATCH * 32));
        const batchRoot = bytesToHex(tree.root);
        state.append(
          hexToBytes(stateLeaf({ batchNumber: batch, vaultCount: BATCH, dataHash, batchRoot })),
        );
        check(state.root().length === 32, "state root");
      };
    },
    growing: (count) => {
      const history = new StateTree(flat.subarray(0, count * 32));
      return {
        add: (leaf) => history.append(leafBytes(leaf)),
        checkRoot: () => check(history.root().length === 32, "state root"),
      };
    },
    proofs: () => {
      const { levels } = built();
      return (leaf) => check(siblingsIn(levels, leaf, 0).length === HEIGHT * 32, "siblings");
    },
    verifiedProofs: () => {
      const { levels, root } = built();
      return (leaf) =>
        check(pathHolds(root, hashAt(flat, leaf), leaf, siblingsIn(levels, leaf, 0)), "proof");
    },
  };
}

/**
 * Works on what `start` builds: once, at first use, or before each run. Undefined without `start`.
 */
function on<T>(
  start: (() => T) | undefined,
  count: number,
  run: (built: T) => void,
  isFresh = false,
) {
  if (start === undefined) return undefined;
  let built: T | undefined;
  const prepare = () => {
    if (isFresh) built = undefined;
    built ??= start();
  };
  return { prepare, count, run: () => run(built as T) };
}

function subjectOf({
  label,
  note,
  ours,
  batches,
  growing,
  proofs,
  verifiedProofs,
}: TreeSubject): Subject {
  const grow = (leavesPerRoot: number) => {
    let next = PREFILLED;
    return on(growing && (() => growing(PREFILLED)), BATCH, (tree) => {
      for (let i = 1; i <= BATCH; i++) {
        tree.add(next++);
        if (i % leavesPerRoot === 0) tree.checkRoot();
      }
    });
  };
  // The proven leaves are spread over the tree.
  const prove = (start: TreeSubject["proofs"]) => {
    let next = 0;
    return on(start, PROOFS, (proof) => {
      for (let i = 0; i < PROOFS; i++) proof((Math.imul(next++, 0x9e3779b1) >>> 0) % LEAVES);
    });
  };
  const add = (batch: (number: number) => void) => {
    for (let number = 0; number < LEAVES / BATCH; number++) batch(number);
  };
  const works = {
    batches: on(batches, LEAVES, add, true),
    appends: grow(BATCH),
    singles: grow(1),
    proofs: prove(proofs),
    verifiedProofs: prove(verifiedProofs),
  };
  return { label, note, ours, works };
}

const COLUMNS = [
  { key: "batches", label: "in batches of 1,000", unit: "thousand leaves/s", better: "higher" },
  {
    key: "appends",
    label: "one at a time, a root a thousand",
    unit: "thousand leaves/s",
    better: "higher",
  },
  {
    key: "singles",
    label: "one at a time, a root each",
    unit: "thousand leaves/s",
    better: "higher",
  },
  { key: "proofs", label: "proofs", unit: "thousand/s", better: "higher" },
  { key: "verifiedProofs", label: "proofs, verified", unit: "thousand/s", better: "higher" },
] as const;

export const treesSection: Section = {
  name: "trees",
  title: "Merkle trees",
  method:
    "100,000 leaves, which lay ready in the form that each library takes; per second of user " +
    "CPU time. Batches: from the empty tree, the root known after every thousand. One at a " +
    "time: to a tree of 90,000, the root asked for after every thousand, or after each. " +
    "Proofs: the siblings of random leaves, which this project packs into one array, and " +
    "others return as references to their nodes. Where a library has no check of its own, its " +
    "proof was folded with the hash that it was given. @aztec/merkle-tree 4.4.0 is missing, because npm lacks what it needs.",
  columns: COLUMNS,
  reference: "Mintmark",
  async rows(progress) {
    installTools("bench");
    const { peerTrees } = await import("./tree-peers.ts");
    return measuredRows(COLUMNS, [ourTrees(), ...peerTrees()].map(subjectOf), (line) =>
      progress(`trees ${line}`),
    );
  },
};
