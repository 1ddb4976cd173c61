import {
  digest64,
  executeHashComputations,
  type HashComputationLevel,
  LeafNode,
  type Node,
  setHasher,
  setNodeAtDepth,
  setNodesAtDepth,
  Tree,
  toGindex,
  zeroNode,
} from "@chainsafe/persistent-merkle-tree";
import { hasher as hashtree } from "@chainsafe/persistent-merkle-tree/hasher/hashtree";
import { keccak_256 } from "@noble/hashes/sha3.js";
import { SimpleMerkleTree } from "@openzeppelin/merkle-tree";
import { IMT } from "@zk-kit/imt";
import { LeanIMT } from "@zk-kit/lean-imt";
import { type Element, MerkleTree as FixedMerkleTree } from "fixed-merkle-tree";
import { MerkleTree as MerkleTreeJs } from "merkletreejs";
import { keccak256 } from "../core/protocol/hash.ts";
import { hashNode } from "../core/protocol/merkle.ts";
import {
  at,
  BATCH,
  check,
  FIXED_HEIGHT,
  LEAVES,
  leafBytes,
  leafList,
  PREFILLED,
  type TreeSubject,
} from "./tree-subjects.ts";

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

/** Every peer with its usual hash and, if its caller can choose, with this project's. */
export function peerTrees(): readonly TreeSubject[] {
  return [
    persistentMerkleTree(),
    ...[ours, noble].flatMap((hash) => [
      leanImt(hash),
      imt(hash),
      fixedMerkleTree(hash),
      merkleTreeJs(hash),
      openZeppelin(hash),
    ]),
  ];
}

function leanImt(hash: PeerHash): TreeSubject {
  const leaves = leafList(LEAVES);
  const filled = () => new LeanIMT<Uint8Array>(hash.node, [...leaves]);
  return {
    label: `@zk-kit/lean-imt, ${hash.name}`,
    note: "grows with its leaves, height 17 here",
    ours: false,
    batches: () => {
      const tree = new LeanIMT<Uint8Array>(hash.node);
      return (batch) => {
        tree.insertMany(leaves.slice(batch * BATCH, (batch + 1) * BATCH));
        check(tree.root.length === 32, "lean-imt root");
      };
    },
    growing: () => {
      const tree = new LeanIMT<Uint8Array>(hash.node, leaves.slice(0, PREFILLED));
      return {
        add: (leaf) => tree.insert(leafBytes(leaf)),
        checkRoot: () => check(tree.root.length === 32, "lean-imt root"),
      };
    },
    proofs: () => {
      const tree = filled();
      return (leaf) => check(tree.generateProof(leaf).siblings.length > 0, "lean-imt proof");
    },
    verifiedProofs: () => {
      const tree = filled();
      // The library compares roots by identity, so the root of its own proof is recomputed here.
      return (leaf) => {
        const { index, leaf: start, siblings } = tree.generateProof(leaf);
        const root = siblings.reduce(
          (node, sibling, level) => ((index >> level) & 1 ? hash.node(sibling, node) : hash.node(node, sibling)),
          start,
        );
        check(Buffer.compare(root, tree.root) === 0, "lean-imt proof");
      };
    },
  };
}

/** Nodes of @zk-kit/imt are numbers or strings. Strings of 32 characters, one a byte, are the fastest. */
function imt(hash: PeerHash): TreeSubject {
  const text = (bytes: Uint8Array) => Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString("latin1");
  const bytes = (node: unknown) => Buffer.from(String(node), "latin1");
  const node = ([left, right]: readonly unknown[]) => text(hash.node(bytes(left), bytes(right)));
  const zero = text(new Uint8Array(32));
  const leaves = leafList(LEAVES).map(text);
  const filled = (count: number) => new IMT(node, FIXED_HEIGHT, zero, 2, leaves.slice(0, count));
  return {
    label: `@zk-kit/imt, ${hash.name}`,
    note: "height 32; cannot add many at once, so a batch is a tree of its own",
    ours: false,
    batches: () => (batch) => {
      const tree = new IMT(node, FIXED_HEIGHT, zero, 2, leaves.slice(batch * BATCH, (batch + 1) * BATCH));
      check(String(tree.root).length === 32, "imt root");
    },
    growing: () => {
      const tree = filled(PREFILLED);
      return {
        add: (leaf) => tree.insert(text(leafBytes(leaf))),
        checkRoot: () => check(String(tree.root).length === 32, "imt root"),
      };
    },
    proofs: () => {
      const tree = filled(LEAVES);
      return (leaf) => check(tree.createProof(leaf).siblings.length === FIXED_HEIGHT, "imt proof");
    },
    verifiedProofs: () => {
      const tree = filled(LEAVES);
      return (leaf) => check(tree.verifyProof(tree.createProof(leaf)), "imt proof");
    },
  };
}

/** Elements are strings or numbers by type. Byte arrays also work, and are the fastest. */
function fixedMerkleTree(hash: PeerHash): TreeSubject {
  const element = (bytes: Uint8Array) => bytes as unknown as Element;
  const bytes = (value: Element) => value as unknown as Uint8Array;
  const options = {
    hashFunction: (left: Element, right: Element) => element(hash.node(bytes(left), bytes(right))) as string,
    zeroElement: element(new Uint8Array(32)),
  };
  const leaves = leafList(LEAVES).map(element);
  const filled = (count: number) => new FixedMerkleTree(FIXED_HEIGHT, leaves.slice(0, count), options);
  return {
    label: `fixed-merkle-tree, ${hash.name}`,
    note: "height 32",
    ours: false,
    batches: () => {
      const tree = filled(0);
      return (batch) => {
        tree.bulkInsert(leaves.slice(batch * BATCH, (batch + 1) * BATCH));
        check(bytes(tree.root).length === 32, "fixed-merkle-tree root");
      };
    },
    growing: () => {
      const tree = filled(PREFILLED);
      return {
        add: (leaf) => tree.insert(element(leafBytes(leaf))),
        checkRoot: () => check(bytes(tree.root).length === 32, "fixed-merkle-tree root"),
      };
    },
    proofs: () => {
      const tree = filled(LEAVES);
      return (leaf) => check(tree.path(leaf).pathElements.length === FIXED_HEIGHT, "fixed-merkle-tree proof");
    },
    verifiedProofs: () => {
      const tree = filled(LEAVES);
      return (leaf) => {
        const { pathElements, pathIndices } = tree.path(leaf);
        const root = pathElements.reduce(
          (node: Uint8Array, sibling, level) => {
            return pathIndices[level] === 1 ? hash.node(bytes(sibling), node) : hash.node(node, bytes(sibling));
          },
          bytes(at(leaves, leaf)),
        );
        check(Buffer.compare(root, bytes(tree.root)) === 0, "fixed-merkle-tree proof");
      };
    },
  };
}

function merkleTreeJs(hash: PeerHash): TreeSubject {
  const leaves = leafList(LEAVES).map((leaf) => Buffer.from(leaf));
  const hashFunction = (message: Uint8Array) => Buffer.from(hash.message(message));
  return {
    label: `merkletreejs, ${hash.name}`,
    note: "cannot add leaves, so a batch is a tree of its own",
    ours: false,
    batches: () => (batch) => {
      const tree = new MerkleTreeJs(leaves.slice(batch * BATCH, (batch + 1) * BATCH), hashFunction);
      check(tree.getRoot().length === 32, "merkletreejs root");
    },
    proofs: () => {
      const tree = new MerkleTreeJs([...leaves], hashFunction);
      return (leaf) => check(tree.getProof(at(leaves, leaf), leaf).length > 0, "merkletreejs proof");
    },
    verifiedProofs: () => {
      const tree = new MerkleTreeJs([...leaves], hashFunction);
      const root = tree.getRoot();
      return (leaf) =>
        check(tree.verify(tree.getProof(at(leaves, leaf), leaf), at(leaves, leaf), root), "merkletreejs proof");
    },
  };
}

function openZeppelin(hash: PeerHash): TreeSubject {
  const leaves = leafList(LEAVES).map((leaf) => `0x${Buffer.from(leaf).toString("hex")}`);
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
  const proofs = () => {
    const tree = SimpleMerkleTree.of(leaves, options);
    return (leaf: number) => check(tree.getProof(leaf).length > 0, "OpenZeppelin proof");
  };
  return {
    label: `@openzeppelin/merkle-tree, ${hash.name}`,
    note: "cannot add leaves, so a batch is a tree of its own; verifies every proof it makes",
    ours: false,
    batches: () => (batch) => {
      const tree = SimpleMerkleTree.of(leaves.slice(batch * BATCH, (batch + 1) * BATCH), options);
      check(tree.root.length === 66, "OpenZeppelin root");
    },
    verifiedProofs: proofs,
  };
}

function persistentMerkleTree(): TreeSubject {
  setHasher(hashtree);
  const leaves = leafList(LEAVES).map((leaf) => LeafNode.fromRoot(leaf));
  const added = (root: Node, first: number, count: number): Node => {
    const levels: HashComputationLevel[] = [];
    const indexes = Array.from({ length: count }, (_, i) => first + i);
    const next = setNodesAtDepth(root, FIXED_HEIGHT, indexes, leaves.slice(first, first + count), 0, levels);
    executeHashComputations(levels);
    return next;
  };
  const siblings = (tree: Tree, leaf: number) => tree.getSingleProof(toGindex(FIXED_HEIGHT, BigInt(leaf)));
  return {
    label: "@chainsafe/persistent-merkle-tree, hashtree",
    note: "height 32; SHA-256 by native code, 8 or 16 nodes at once",
    ours: false,
    batches: () => {
      let root = zeroNode(FIXED_HEIGHT);
      return (batch) => {
        root = added(root, batch * BATCH, BATCH);
        check(root.root.length === 32, "persistent-merkle-tree root");
      };
    },
    growing: () => {
      let root = added(zeroNode(FIXED_HEIGHT), 0, PREFILLED);
      return {
        add: (leaf) => {
          root = setNodeAtDepth(root, FIXED_HEIGHT, leaf, LeafNode.fromRoot(leafBytes(leaf)));
        },
        checkRoot: () => check(root.root.length === 32, "persistent-merkle-tree root"),
      };
    },
    proofs: () => {
      const tree = new Tree(added(zeroNode(FIXED_HEIGHT), 0, LEAVES));
      return (leaf) => check(siblings(tree, leaf).length === FIXED_HEIGHT, "persistent-merkle-tree proof");
    },
    verifiedProofs: () => {
      const tree = new Tree(added(zeroNode(FIXED_HEIGHT), 0, LEAVES));
      return (leaf) => {
        const root = siblings(tree, leaf).reduce(
          (node, sibling, level) => ((leaf >> level) & 1 ? digest64(sibling, node) : digest64(node, sibling)),
          at(leaves, leaf).root,
        );
        check(Buffer.compare(root, tree.root) === 0, "persistent-merkle-tree proof");
      };
    },
  };
}
