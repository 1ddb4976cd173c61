import { MintmarkError } from "../errors.ts";
import { requireInteger } from "./bounds.ts";
import { foldPath, HASH_BYTES, hashAt, packed } from "./hex.ts";
import { hashNode, MAX_HEIGHT, zeroRoot } from "./merkle.ts";
import { MAX_BATCH_NUMBER } from "./vault.ts";

const FRONTIER_VERSION = 0x01;
const FRONTIER_HEADER_BYTES = 5;

/** Most batches of a mode: one less than 2^32, so the next free position always has a proof. */
export const MAX_STATE_LEAVES = MAX_BATCH_NUMBER;

/**
 * The append-only state tree of one mode, height 32, in the form of L1: the count and the frontier,
 * no other node. Appending costs at most 32 hashes, two on average.
 *
 * ```
 *   count = 6 = 0b110          frontier[2] = ABCD, frontier[1] = EF
 *        ╱        ╲
 *     ABCD         ·
 *     ╱  ╲       ╱   ╲
 *    AB   CD    EF    Z[1]
 * ```
 *
 * @example
 * const tree = new StateTree();
 * for (const batch of commits) tree.append(hexToBytes(stateLeaf(batch)));
 * bytesToHex(tree.root) === rootFromL1; // true
 */
export class StateTree {
  #count = 0;
  /**
   * The siblings of the next free leaf: the frontier where the count has a bit, empty subtrees
   * elsewhere.
   */
  readonly #path = packed(
    [HASH_BYTES],
    ...Array.from({ length: MAX_HEIGHT }, (_, height) => zeroRoot(height)),
  );

  /** The number of leaves, and of the next batch. */
  get count(): number {
    return this.#count;
  }

  /** 32 bytes. */
  get root(): Uint8Array {
    return foldPath(zeroRoot(0), this.#count, this.#path);
  }

  /** The roots of the completed left subtrees, lowest first: one for each bit set in the count. */
  get frontier(): readonly Uint8Array[] {
    const heights = Array.from({ length: MAX_HEIGHT }, (_, height) => height);
    const completed = heights.filter((height) => bit(this.#count, height) === 1);
    return completed.map((height) => hashAt(this.#path, height).slice());
  }

  /**
   * Appends the state leaf of batch number `count`. It completes one subtree for every trailing 1
   * bit of the count.
   *
   * @param leaf - 32 bytes, copied
   * @throws MintmarkError `validation_failed` when the tree is full
   */
  append(leaf: Uint8Array): void {
    requireNext(this.#count, leaf);
    let node = leaf;
    let height = 0;
    for (; bit(this.#count, height) === 1; height++) {
      node = hashNode(hashAt(this.#path, height), node);
      this.#path.set(zeroRoot(height), height * HASH_BYTES);
    }
    this.#path.set(node, height * HASH_BYTES);
    this.#count++;
  }

  /** `version(1) = 0x01 ‖ count(4) ‖ frontier(32 each, lowest first)`. */
  serialise(): Uint8Array {
    const frontier = this.frontier;
    const bytes = new Uint8Array(FRONTIER_HEADER_BYTES + frontier.length * HASH_BYTES);
    bytes[0] = FRONTIER_VERSION;
    new DataView(bytes.buffer).setUint32(1, this.#count);
    for (const [i, node] of frontier.entries())
      bytes.set(node, FRONTIER_HEADER_BYTES + i * HASH_BYTES);
    return bytes;
  }

  /**
   * The inverse of {@link StateTree.serialise}.
   *
   * @throws MintmarkError `store_corrupt` for another version or length
   */
  static restore(bytes: Uint8Array): StateTree {
    const tree = new StateTree();
    if (bytes.length < FRONTIER_HEADER_BYTES || bytes[0] !== FRONTIER_VERSION) {
      throw new MintmarkError(
        "store_corrupt",
        "this engine does not know the version of the state tree's frontier",
      );
    }
    tree.#count = new DataView(bytes.buffer, bytes.byteOffset).getUint32(1);
    const nodes = bytes.slice(FRONTIER_HEADER_BYTES);
    let next = 0;
    for (let height = 0; height < MAX_HEIGHT; height++) {
      if (bit(tree.#count, height) === 1)
        tree.#path.set(hashAt(nodes, next++), height * HASH_BYTES);
    }
    if (nodes.length !== next * HASH_BYTES) {
      throw new MintmarkError(
        "store_corrupt",
        "the frontier of the state tree does not fit its count",
      );
    }
    return tree;
  }
}

/**
 * A {@link StateTree} with all completed nodes, 64 bytes a batch, for the siblings of any position
 * at any earlier count.
 *
 * @example
 * const history = new StateHistory(leaves);
 * const proof = proveConsistency(history, 12);
 */
export class StateHistory {
  #count = 0;
  /** `[h]` holds the completed nodes of height h, packed. Arrays grow by doubling. */
  readonly #completed: Uint8Array[] = Array.from(
    { length: MAX_HEIGHT + 1 },
    () => new Uint8Array(HASH_BYTES),
  );

  /** @param leaves - state leaves in batch order, 32 bytes each, packed */
  constructor(leaves: Uint8Array = new Uint8Array()) {
    for (let at = 0; at < leaves.length; at += HASH_BYTES)
      this.append(leaves.subarray(at, at + HASH_BYTES));
  }

  get count(): number {
    return this.#count;
  }

  /**
   * Appends the state leaf of batch number `count` and copies it. Throws as {@link
   * StateTree.append} does.
   */
  append(leaf: Uint8Array): void {
    requireNext(this.#count, leaf);
    let node = leaf;
    this.#store(0, this.#count, node);
    for (let height = 0; bit(this.#count, height) === 1; height++) {
      const index = this.#count >>> height;
      node = hashNode(this.#node(height, index - 1), node);
      this.#store(height + 1, index >>> 1, node);
    }
    this.#count++;
  }

  /** The state leaf of a batch; a view of 32 bytes. */
  leaf(batchNumber: number): Uint8Array {
    requireInteger("batchNumber", batchNumber, 0, this.#count - 1);
    return this.#node(0, batchNumber);
  }

  /** A separate history of the first `count` leaves. */
  first(count: number): StateHistory {
    requireInteger("count", count, 0, this.#count);
    return new StateHistory(this.#completed[0]?.subarray(0, count * HASH_BYTES));
  }

  /** The root of the tree of `count` leaves. */
  root(count: number = this.#count): Uint8Array {
    requireInteger("count", count, 0, this.#count);
    return foldPath(zeroRoot(0), count, this.siblings(count, count));
  }

  /**
   * The 32 siblings of a position in the tree of `count` leaves, 32 bytes each, from the leaf
   * upwards. A sibling is complete, or empty, or the subtree of its height that holds the next free
   * leaf, where the two paths part:
   *
   * ```
   *   count = 6, position = 1          siblings: A, CD, edge = node(EF, Z[1])
   *        ╱        ╲
   *     ABCD        edge
   *     ╱  ╲       ╱   ╲
   *    AB   CD    EF    Z[1]
   * ```
   *
   * @param position - 0 to `count`; `count` itself is the next free leaf
   * @throws MintmarkError `validation_failed` when the tree never had that many leaves
   */
  siblings(position: number, count: number = this.#count): Uint8Array {
    requireInteger("count", count, 0, this.#count);
    requireInteger("position", position, 0, count);
    const siblings = new Uint8Array(MAX_HEIGHT * HASH_BYTES);
    for (let height = 0; height < MAX_HEIGHT; height++) {
      const edge = count >>> height;
      const index = ((position >>> height) ^ 1) >>> 0;
      const sibling =
        index < edge
          ? this.#node(height, index)
          : index > edge
            ? zeroRoot(height)
            : this.#edge(height, count);
      siblings.set(sibling, height * HASH_BYTES);
    }
    return siblings;
  }

  /**
   * The subtree of a height with the next free leaf at `count`. All to the right of its path is
   * empty.
   */
  #edge(height: number, count: number): Uint8Array {
    return foldPath(
      zeroRoot(0),
      count,
      this.siblings(count, count).subarray(0, height * HASH_BYTES),
    );
  }

  #node(height: number, index: number): Uint8Array {
    return hashAt(this.#completed[height] as Uint8Array, index);
  }

  #store(height: number, index: number, node: Uint8Array): void {
    let level = this.#completed[height] as Uint8Array;
    if ((index + 1) * HASH_BYTES > level.length) {
      const grown = new Uint8Array(level.length * 2);
      grown.set(level);
      level = grown;
      this.#completed[height] = grown;
    }
    level.set(node, index * HASH_BYTES);
  }
}

/** Throws `validation_failed` when the tree is full, or the leaf is not 32 bytes. */
function requireNext(count: number, leaf: Uint8Array): void {
  requireInteger("batchNumber", count, 0, MAX_STATE_LEAVES - 1);
  requireInteger("length of a state leaf", leaf.length, HASH_BYTES, HASH_BYTES);
}

function bit(count: number, height: number): number {
  return (count >>> height) & 1;
}
