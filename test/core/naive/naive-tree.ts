import { keccak_256 } from "@noble/hashes/sha3.js";
import { concatBytes } from "@noble/hashes/utils.js";

/**
 * Merkle trees of the protocol as its page defines them, by recursion over padded leaves; shares
 * nothing with the core.
 */

const ZERO_LEAF = new Uint8Array(32);
const NODE = Uint8Array.of(1);

export function naiveNode(left: Uint8Array, right: Uint8Array): Uint8Array {
  return keccak_256(concatBytes(NODE, left, right));
}

/** ceil(log2 count) by counting. */
export function naiveHeight(count: number): number {
  let height = 0;
  while (2 ** height < count) height++;
  return height;
}

/** `Z[height]`. */
export function naiveZero(height: number): Uint8Array {
  if (height === 0) return ZERO_LEAF;
  const half = naiveZero(height - 1);
  return naiveNode(half, half);
}

export function naiveRoot(
  leaves: readonly Uint8Array[],
  height = naiveHeight(leaves.length),
): Uint8Array {
  if (leaves.length === 0) return naiveZero(height);
  if (height === 0) return leaves[0] ?? ZERO_LEAF;
  const half = 2 ** (height - 1);
  return naiveNode(
    naiveRoot(leaves.slice(0, half), height - 1),
    naiveRoot(leaves.slice(half), height - 1),
  );
}

/** From the leaf upwards. */
export function naiveSiblings(
  leaves: readonly Uint8Array[],
  position: number,
  height = naiveHeight(leaves.length),
): Uint8Array[] {
  if (height === 0) return [];
  const half = 2 ** (height - 1);
  const [left, right] = [leaves.slice(0, half), leaves.slice(half)];
  return position < half
    ? [...naiveSiblings(left, position, height - 1), naiveRoot(right, height - 1)]
    : [...naiveSiblings(right, position - half, height - 1), naiveRoot(left, height - 1)];
}

/**
 * Every sibling of every slot that is not itself above a slot, each once, level by level, left to
 * right.
 */
export function naiveMultiproof(
  leaves: readonly Uint8Array[],
  slots: readonly number[],
): Uint8Array[] {
  const height = naiveHeight(leaves.length);
  const found: Uint8Array[] = [];
  for (let level = 0; level < height; level++) {
    const covered = new Set(slots.map((slot) => Math.floor(slot / 2 ** level)));
    for (const index of [...covered].sort((a, b) => a - b)) {
      const sibling = index % 2 === 0 ? index + 1 : index - 1;
      if (covered.has(sibling)) continue;
      found.push(naiveRoot(leaves.slice(sibling * 2 ** level, (sibling + 1) * 2 ** level), level));
    }
  }
  return found;
}
