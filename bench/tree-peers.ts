import * as persistent from "@chainsafe/persistent-merkle-tree";
import { hasher as hashtree } from "@chainsafe/persistent-merkle-tree/hasher/hashtree";
import { keccak_256 } from "@noble/hashes/sha3.js";
import { SimpleMerkleTree } from "@openzeppelin/merkle-tree";
import { IMT } from "@zk-kit/imt";
import { LeanIMT } from "@zk-kit/lean-imt";
import { type Element, MerkleTree as FixedMerkleTree } from "fixed-merkle-tree";
import { MerkleTree as MerkleTreeJs } from "merkletreejs";
import { keccak256 } from "../core/protocol/hex.ts";
import { hashNode } from "../core/protocol/merkle.ts";
import { BATCH, check, LEAVES, leafBytes, leafList, type TreeSubject } from "./tree-subject.ts";

/** A hash for a library that lets its caller choose. */
interface PeerHash {
  readonly name: string;
  readonly message: (message: Uint8Array) => Uint8Array;
  readonly node: (left: Uint8Array, right: Uint8Array) => Uint8Array;
}

const noble: PeerHash = {
  name: "@noble/hashes",
  message: keccak_256,
  node: (left, right) => {
    const pair = new Uint8Array(64);
    pair.set(left);
    pair.set(right, 32);
    return keccak_256(pair);
  },
};
const ours: PeerHash = { name: "Mintmark's keccak", message: keccak256, node: hashNode };
/** Height of the protocol's state tree, and of peers whose height is fixed. */
const FIXED_HEIGHT = 32;

/** Every peer with its usual hash and, if its caller can choose, with this project's. */
export function peerTrees(): readonly TreeSubject[] {
  const peers = [leanImt, imt, fixedMerkleTree, merkleTreeJs, openZeppelin];
  const chosen = [ours, noble].flatMap((hash) => peers.map((peerOf) => peerOf(hash)));
  return [persistentMerkleTree(), ...chosen];
}

interface Library<T, L> {
  readonly label: string;
  readonly note: string;
  leaf(bytes: Uint8Array<ArrayBuffer>): L;
  build(leaves: L[]): T;
  /** Without it, a batch is a tree of its own. */
  addMany?(tree: T, leaves: L[]): void;
  /** Without it, the tree cannot grow. */
  add?(tree: T, leaf: L): void;
  /** Whether the tree tells a root of the right size. */
  hasRoot(tree: T): boolean;
  /**
   * The number of the siblings in a proof. Without it, each proof that the library makes is
   * verified.
   */
  siblings?(tree: T, index: number, leaf: L): number;
  /** Makes a proof, and checks it. */
  verify(tree: T, index: number, leaf: L): boolean;
}

function peer<T, L>(library: Library<T, L>): TreeSubject {
  const { label, note, leaf, build, hasRoot, verify } = library;
  const [add, addMany, siblings] = [library.add, library.addMany, library.siblings];
  const leaves = leafList(LEAVES).map(leaf);
  const checkRoot = (tree: T) => check(hasRoot(tree), `${label} root`);
  const proving = (proves: (tree: T, index: number, leaf: L) => boolean) => () => {
    const tree = build([...leaves]);
    return (index: number) => check(proves(tree, index, leaves[index] as L), `${label} proof`);
  };
  return {
    label,
    note,
    ours: false,
    batches: () => {
      const whole = addMany && build([]);
      return (batch) => {
        const part = leaves.slice(batch * BATCH, (batch + 1) * BATCH);
        if (whole !== undefined) addMany?.(whole, part);
        checkRoot(whole ?? build(part));
      };
    },
    ...(add && {
      growing: (count) => {
        const tree = build(leaves.slice(0, count));
        return {
          add: (index) => add(tree, leaf(leafBytes(index))),
          checkRoot: () => checkRoot(tree),
        };
      },
    }),
    ...(siblings && { proofs: proving((tree, index, own) => siblings(tree, index, own) > 0) }),
    verifiedProofs: proving(verify),
  };
}

/** The root of a proof, for libraries that do not verify one. */
function folded<N>(
  hash: (left: N, right: N) => N,
  start: N,
  siblings: readonly N[],
  index: number,
): N {
  const above = (node: N, sibling: N, level: number) =>
    (index >> level) & 1 ? hash(sibling, node) : hash(node, sibling);
  return siblings.reduce(above, start);
}

const isSame = (one: Uint8Array, other: Uint8Array) => Buffer.compare(one, other) === 0;

function leanImt(hash: PeerHash): TreeSubject {
  return peer<LeanIMT<Uint8Array>, Uint8Array>({
    label: `@zk-kit/lean-imt, ${hash.name}`,
    note: "grows with its leaves, height 17 here",
    leaf: (bytes) => bytes,
    build: (leaves) => new LeanIMT<Uint8Array>(hash.node, leaves),
    addMany: (tree, leaves) => tree.insertMany(leaves),
    add: (tree, leaf) => tree.insert(leaf),
    hasRoot: (tree) => tree.root.length === 32,
    siblings: (tree, index) => tree.generateProof(index).siblings.length,
    // The library compares roots by identity, so the root of its own proof is recomputed here.
    verify: (tree, place) => {
      const { index, leaf, siblings } = tree.generateProof(place);
      return isSame(folded(hash.node, leaf, siblings, index), tree.root);
    },
  });
}

/**
 * Nodes of @zk-kit/imt are numbers or strings. Strings of 32 characters, one a byte, are the
 * fastest.
 */
function imt(hash: PeerHash): TreeSubject {
  const text = (bytes: Uint8Array) =>
    Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString("latin1");
  const bytes = (node: unknown) => Buffer.from(String(node), "latin1");
  const node = ([left, right]: readonly unknown[]) => text(hash.node(bytes(left), bytes(right)));
  const zero = text(new Uint8Array(32));
  return peer<IMT, string>({
    label: `@zk-kit/imt, ${hash.name}`,
    note: "height 32; cannot add many at once, so a batch is a tree of its own",
    leaf: text,
    build: (leaves) => new IMT(node, FIXED_HEIGHT, zero, 2, leaves),
    add: (tree, leaf) => tree.insert(leaf),
    hasRoot: (tree) => String(tree.root).length === 32,
    siblings: (tree, index) => tree.createProof(index).siblings.length,
    verify: (tree, index) => tree.verifyProof(tree.createProof(index)),
  });
}

/** Elements are strings or numbers by type. Byte arrays also work, and are the fastest. */
function fixedMerkleTree(hash: PeerHash): TreeSubject {
  const element = (bytes: Uint8Array) => bytes as unknown as Element;
  const bytes = (value: Element) => value as unknown as Uint8Array;
  const options = {
    hashFunction: (left: Element, right: Element) =>
      element(hash.node(bytes(left), bytes(right))) as string,
    zeroElement: element(new Uint8Array(32)),
  };
  return peer<FixedMerkleTree, Element>({
    label: `fixed-merkle-tree, ${hash.name}`,
    note: "height 32",
    leaf: element,
    build: (leaves) => new FixedMerkleTree(FIXED_HEIGHT, leaves, options),
    addMany: (tree, leaves) => tree.bulkInsert(leaves),
    add: (tree, leaf) => tree.insert(leaf),
    hasRoot: (tree) => bytes(tree.root).length === 32,
    siblings: (tree, index) => tree.path(index).pathElements.length,
    verify: (tree, index, leaf) =>
      isSame(
        folded(hash.node, bytes(leaf), tree.path(index).pathElements.map(bytes), index),
        bytes(tree.root),
      ),
  });
}

function merkleTreeJs(hash: PeerHash): TreeSubject {
  const hashFunction = (message: Uint8Array) => Buffer.from(hash.message(message));
  return peer<MerkleTreeJs, Buffer>({
    label: `merkletreejs, ${hash.name}`,
    note: "cannot add leaves, so a batch is a tree of its own",
    leaf: (bytes) => Buffer.from(bytes),
    build: (leaves) => new MerkleTreeJs(leaves, hashFunction),
    hasRoot: (tree) => tree.getRoot().length === 32,
    siblings: (tree, index, leaf) => tree.getProof(leaf, index).length,
    verify: (tree, index, leaf) => tree.verify(tree.getProof(leaf, index), leaf, tree.getRoot()),
  });
}

function openZeppelin(hash: PeerHash): TreeSubject {
  const bytes = (value: unknown) =>
    typeof value === "string" ? Buffer.from(value.slice(2), "hex") : (value as Uint8Array);
  const nodeHash = (left: unknown, right: unknown) => {
    const [a, b] = [bytes(left), bytes(right)];
    // This library sorts the two nodes before hashing.
    const node = Buffer.compare(a, b) < 0 ? hash.node(a, b) : hash.node(b, a);
    return `0x${Buffer.from(node).toString("hex")}`;
  };
  // Its default hash is @noble/hashes too.
  const options = hash === noble ? { sortLeaves: false } : { sortLeaves: false, nodeHash };
  return peer<SimpleMerkleTree, string>({
    label: `@openzeppelin/merkle-tree, ${hash.name}`,
    note: "cannot add leaves, so a batch is a tree of its own; verifies every proof it makes",
    leaf: (leaf) => `0x${Buffer.from(leaf).toString("hex")}`,
    build: (leaves) => SimpleMerkleTree.of(leaves, options),
    hasRoot: (tree) => tree.root.length === 66,
    verify: (tree, index) => tree.getProof(index).length > 0,
  });
}

function persistentMerkleTree(): TreeSubject {
  persistent.setHasher(hashtree);
  /** The library's nodes never change: adding leaves makes another root. */
  interface Growing {
    root: persistent.Node;
    size: number;
  }
  const addMany = (tree: Growing, leaves: readonly persistent.Node[]) => {
    const levels: persistent.HashComputationLevel[] = [];
    const indexes = leaves.map((_, i) => tree.size + i);
    tree.root = persistent.setNodesAtDepth(
      tree.root,
      FIXED_HEIGHT,
      indexes,
      [...leaves],
      0,
      levels,
    );
    tree.size += leaves.length;
    persistent.executeHashComputations(levels);
  };
  const siblings = ({ root }: Growing, leaf: number) =>
    new persistent.Tree(root).getSingleProof(persistent.toGindex(FIXED_HEIGHT, BigInt(leaf)));
  return peer<Growing, persistent.LeafNode>({
    label: "@chainsafe/persistent-merkle-tree, hashtree",
    note: "height 32; SHA-256 by native code, 8 or 16 nodes at once",
    leaf: (bytes) => persistent.LeafNode.fromRoot(bytes),
    build: (leaves) => {
      const tree = { root: persistent.zeroNode(FIXED_HEIGHT), size: 0 };
      if (leaves.length > 0) addMany(tree, leaves);
      return tree;
    },
    addMany,
    add: (tree, leaf) => {
      tree.root = persistent.setNodeAtDepth(tree.root, FIXED_HEIGHT, tree.size++, leaf);
    },
    hasRoot: ({ root }) => root.root.length === 32,
    siblings: (tree, index) => siblings(tree, index).length,
    verify: (tree, index, leaf) =>
      isSame(folded(persistent.digest64, leaf.root, siblings(tree, index), index), tree.root.root),
  });
}
