import { invalid } from "../errors.ts";
import { MAX_BATCH_VAULTS } from "../model.ts";
import { requireInteger } from "./bounds.ts";
import { HASH_BYTES, hashAt } from "./hex.ts";
import { hashNode, treeHeight } from "./merkle.ts";

/** The available nodes of a batch's tree, including empty subtrees. */
export interface TreeNodes {
  readonly count: number;
  /** ceil(log2 count). */
  readonly height: number;
  /** 32 bytes. */
  node(height: number, index: number): Uint8Array;
}

/**
 * The siblings that prove many slots of a batch at once: all that the slots' leaves do not
 * determine, level by level from the leaves, left to right, 32 bytes each, packed. Padding is
 * included, so a verifier need not know the end of the batch.
 *
 * @param slots - strictly ascending, at least one
 * @throws MintmarkError `validation_failed` for slots that do not ascend or are not in the batch
 */
export function multiproofSiblings(tree: TreeNodes, slots: readonly number[]): Uint8Array {
  requireAscendingSlots(slots, tree.count);
  const siblings: Uint8Array[] = [];
  for (const { height, index, isPair } of nodesAbove(slots, tree.height))
    if (!isPair) siblings.push(tree.node(height, index ^ 1));
  const packed = new Uint8Array(siblings.length * HASH_BYTES);
  for (const [i, sibling] of siblings.entries()) packed.set(sibling, i * HASH_BYTES);
  return packed;
}

/**
 * The root of the vault tree with the leaves at their slots; null for too few or too many siblings.
 *
 * @param leaves - 32 bytes a slot, in the slots' order
 * @param siblings - from {@link multiproofSiblings}
 * @throws MintmarkError `validation_failed` for slots that do not ascend or are not in the batch
 */
export function multiproofRoot(
  count: number,
  slots: readonly number[],
  leaves: Uint8Array,
  siblings: Uint8Array,
): Uint8Array | null {
  requireAscendingSlots(slots, count);
  if (leaves.length !== slots.length * HASH_BYTES || siblings.length % HASH_BYTES !== 0)
    return null;
  const available = siblings.length / HASH_BYTES;
  let used = 0;
  // The nodes of a level, then their parents.
  const nodes = slots.map((_, i) => hashAt(leaves, i));
  let next = 0;
  for (const { index, isPair } of nodesAbove(slots, treeHeight(count))) {
    if (!isPair && used === available) return null;
    const node = nodes[next++] as Uint8Array;
    const sibling = isPair ? (nodes[next++] as Uint8Array) : hashAt(siblings, used++);
    nodes.push((index & 1) === 0 ? hashNode(node, sibling) : hashNode(sibling, node));
  }
  return used === available ? (nodes[next] as Uint8Array) : null;
}

/**
 * The nodes that are hashed on the way to the root, from the leaves: each known node, and whether
 * the next one is its sibling.
 */
function* nodesAbove(slots: readonly number[], treeHeight: number) {
  let known = slots;
  for (let height = 0; height < treeHeight; height++) {
    const parents: number[] = [];
    for (let i = 0; i < known.length; i++) {
      const index = known[i]!;
      const isPair = known[i + 1] === (index ^ 1);
      if (isPair) i++;
      parents.push(index >>> 1);
      yield { height, index, isPair };
    }
    known = parents;
  }
}

function requireAscendingSlots(slots: readonly number[], count: number): void {
  requireInteger("count", count, 1, MAX_BATCH_VAULTS);
  let previous = -1;
  for (const slot of slots) {
    requireInteger("slot", slot, 0, count - 1);
    if (slot <= previous) throw invalid(`slot ${slot} does not ascend`);
    previous = slot;
  }
  if (slots.length === 0) throw invalid("a multiproof needs at least one slot");
}
