import { installTools } from "../scripts/build/tools.ts";
import { measure, type Subject } from "./measure.ts";
import type { Row, Section } from "./section.ts";
import { ourTrees } from "./tree-ours.ts";
import { BATCH, type GrowingTree, LEAVES, PREFILLED, type TreeSubject } from "./tree-subjects.ts";

const PROOFS = 200;

const COLUMNS = [
  { key: "batches", label: "in batches of 1,000", unit: "thousand leaves/s", better: "higher" },
  { key: "appends", label: "one at a time, a root a thousand", unit: "thousand leaves/s", better: "higher" },
  { key: "singles", label: "one at a time, a root each", unit: "thousand leaves/s", better: "higher" },
  { key: "proofs", label: "proofs", unit: "thousand/s", better: "higher" },
  { key: "verifiedProofs", label: "proofs, verified", unit: "thousand/s", better: "higher" },
] as const;

type Key = (typeof COLUMNS)[number]["key"];

/** The measurement of one figure of one library; undefined where it cannot do it. */
function subject(tree: TreeSubject, key: Key): Subject | undefined {
  if (key === "appends" || key === "singles") return growing(tree, key === "singles" ? 1 : BATCH);
  const start = tree[key];
  if (start === undefined) return undefined;
  if (key === "batches") {
    let add: ((batch: number) => void) | undefined;
    return {
      label: tree.label,
      prepare: () => {
        add = start();
      },
      run: () => {
        for (let batch = 0; batch < LEAVES / BATCH; batch++) add?.(batch);
        return LEAVES;
      },
    };
  }
  // The tree is built once, at first use; the proven leaves are spread over it.
  let prove: ((leaf: number) => void) | undefined;
  let next = 0;
  return {
    label: tree.label,
    prepare: () => {
      prove ??= start();
    },
    run: () => {
      for (let i = 0; i < PROOFS; i++) prove?.((Math.imul(next++, 0x9e3779b1) >>> 0) % LEAVES);
      return PROOFS;
    },
  };
}

/** Adds leaves one at a time to a tree that is built once, and asks for its root after every `leavesPerRoot`. */
function growing({ label, growing: start }: TreeSubject, leavesPerRoot: number): Subject | undefined {
  if (start === undefined) return undefined;
  let tree: GrowingTree | undefined;
  let next = PREFILLED;
  return {
    label,
    prepare: () => {
      tree ??= start();
    },
    run: () => {
      for (let i = 1; i <= BATCH; i++) {
        tree?.add(next++);
        if (i % leavesPerRoot === 0) tree?.checkRoot();
      }
      return BATCH;
    },
  };
}

/** Append-only Merkle trees of 100,000 leaves, compared with other libraries. */
export const treesSection: Section = {
  name: "trees",
  async run(progress) {
    installTools("bench");
    const { peerTrees } = await import("./tree-peers.ts");
    const trees = [ourTrees(), ...peerTrees()];
    const values = new Map<Key, ReadonlyMap<string, number>>();
    for (const { key } of COLUMNS) {
      const subjects = trees.map((tree) => subject(tree, key)).filter((found) => found !== undefined);
      values.set(key, await measure(subjects, (line) => progress(`trees ${key}, ${line}`)));
    }
    const value = (key: Key, label: string): number | null => {
      const ns = values.get(key)?.get(label);
      return ns === undefined ? null : 1e6 / ns;
    };
    const rows: Row[] = trees.map(({ label, note, ours }) => ({
      label,
      note,
      ours,
      values: Object.fromEntries(COLUMNS.map(({ key }) => [key, value(key, label)])),
    }));
    return {
      name: "trees",
      title: "Merkle trees",
      method:
        "100,000 leaves, which lay ready in the form that each library takes; per second of user CPU time. Batches: " +
        "from the empty tree, the root known after every thousand. One at a time: to a tree of 90,000, the root asked " +
        "for after every thousand, as whoever seals batches does, or after each. A root of height 32 is 32 hashes in " +
        "a row; one of a tree that grows as its leaves do is about half its height of 17. Proofs: the siblings of " +
        "random leaves of one tree of 100,000. This project packs them into one array, and its API hands out only " +
        "verified ones. Others return references to their nodes. Where a library has no check of its own, its proof " +
        "was folded with the hash that it was given. @aztec/merkle-tree 4.4.0 is missing: it depends on " +
        "@aztec/kv-store 4.4.0, which npm does not have.",
      columns: COLUMNS,
      rows,
      reference: "Mintmark",
    };
  },
};
