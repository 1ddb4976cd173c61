import { requireInteger } from "./bounds.ts";
import { foldPath, HASH_BYTES, hashAt } from "./hex.ts";
import { hashNode, MAX_HEIGHT, zeroRoot } from "./merkle.ts";
import { MAX_BATCH_NUMBER } from "./vault.ts";

/** Most batches of a mode: one less than 2^32, so the next free position always has a proof. */
export const MAX_STATE_LEAVES = MAX_BATCH_NUMBER;

/**
 * The append-only state tree of one mode, of height 32. It keeps all completed nodes, 64 bytes a
 * batch, so it has the siblings of any position at any earlier count. Appending costs at most 32
 * hashes, two on average.
 *
 * ```
 *   count = 6 = 0b110          completed: A to F; AB, CD, EF; ABCD
 *        ╱        ╲
 *     ABCD         ·
 *     ╱  ╲       ╱   ╲
 *    AB   CD    EF    Z[1]
 * ```
 *
 * @example
 * const tree = new StateTree();
 * for (const batch of commits) tree.append(hexToBytes(stateLeaf(batch)));
 * bytesToHex(tree.root()) === rootFromL1; // true
 * const proof = proveConsistency(tree, 12);
 */
export class StateTree {
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
   * Appends the state leaf of batch number `count`, and copies it. It completes one subtree for
   * every trailing 1 bit of the count.
   *
   * @param leaf - 32 bytes
   * @throws MintmarkError `validation_failed` when the tree is full
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

  /** Leaves only the first `count` leaves. */
  truncate(count: number): void {
    requireInteger("count", count, 0, this.#count);
    this.#count = count;
  }

  /** A separate tree of the first `count` leaves. */
  first(count: number): StateTree {
    requireInteger("count", count, 0, this.#count);
    return new StateTree(this.#completed[0]?.subarray(0, count * HASH_BYTES));
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
