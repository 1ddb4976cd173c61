import { equalBytes, foldPath, HASH_BYTES, hashAt, hashPairs } from "./hex.ts";

/** Height of the tallest tree of the protocol, the state tree. */
export const MAX_HEIGHT = 32;

/** A node: `keccak256(0x01 ‖ left ‖ right)`; 32 bytes each. */
export function hashNode(left: Uint8Array, right: Uint8Array): Uint8Array {
  return foldPath(left, 0, right);
}

/**
 * `Z[h]`, the root of a subtree of height h that holds only zero leaves:
 *
 * ```
 *   Z[2]            = node(Z[1], Z[1])
 *   ├── Z[1]        = node(Z[0], Z[0])
 *   └── Z[1]
 *        └── Z[0]   = 32 zero bytes
 * ```
 */
const ZERO_ROOTS: Uint8Array[] = [new Uint8Array(HASH_BYTES)];
while (ZERO_ROOTS.length <= MAX_HEIGHT) {
  const below = ZERO_ROOTS.at(-1) as Uint8Array;
  ZERO_ROOTS.push(hashNode(below, below));
}

/** `Z[height]`, 0 to 32. The 32 bytes are shared: do not write to them. */
export function zeroRoot(height: number): Uint8Array {
  const root = ZERO_ROOTS[height];
  if (root === undefined) throw new RangeError(`no tree of the protocol has height ${height}`);
  return root;
}

/** The height of a tree of `count` leaves: ceil(log2 count), 0 for one leaf. */
export function treeHeight(count: number): number {
  return count <= 1 ? 0 : 32 - Math.clz32(count - 1);
}

/** Whether a path leads from the leaf at a position to the root. */
export function pathHolds(
  root: Uint8Array,
  leaf: Uint8Array,
  position: number,
  siblings: Uint8Array,
): boolean {
  return equalBytes(foldPath(leaf, position, siblings), root);
}

/**
 * All levels of a subtree, from nodes of height `bottom` to the root at height `top`. Each level is
 * one flat array of 32 bytes a node without padding, hashed in one call:
 *
 * ```
 *   levels[2]   ▉                 one node
 *   levels[1]   ▉ ▉               the second one is node(c, Z[bottom])
 *   levels[0]   a b c             the input, not copied
 * ```
 *
 * @param nodes - 1 to 2^(top - bottom) nodes, 32 bytes each; kept by reference
 */
export function buildLevels(nodes: Uint8Array, bottom: number, top: number): readonly Uint8Array[] {
  const levels = [nodes];
  let below = nodes;
  for (let height = bottom; height < top; height++) {
    const count = below.length / HASH_BYTES;
    const level = new Uint8Array(Math.ceil(count / 2) * HASH_BYTES);
    const pairs = Math.floor(count / 2);
    hashPairs(below, level, pairs);
    if (count % 2 === 1)
      level.set(hashNode(hashAt(below, count - 1), zeroRoot(height)), pairs * HASH_BYTES);
    levels.push(level);
    below = level;
  }
  return levels;
}

/**
 * A node of a level from {@link buildLevels}; beyond the end, the root of an empty subtree of that
 * height.
 */
export function nodeIn(level: Uint8Array, index: number, height: number): Uint8Array {
  return index * HASH_BYTES < level.length ? hashAt(level, index) : zeroRoot(height);
}

/**
 * The siblings of one node in the levels from {@link buildLevels}, 32 bytes a level, packed.
 *
 * @param index - of the node in `levels[0]`
 * @param bottom - the height of `levels[0]`
 */
export function siblingsIn(
  levels: readonly Uint8Array[],
  index: number,
  bottom: number,
): Uint8Array {
  const siblings = new Uint8Array((levels.length - 1) * HASH_BYTES);
  for (let i = 0; i < levels.length - 1; i++) {
    siblings.set(nodeIn(levels[i] ?? siblings, (index >>> i) ^ 1, bottom + i), i * HASH_BYTES);
  }
  return siblings;
}
