import { MintmarkError } from "../errors.ts";
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

interface PlacedNode {
  readonly index: number;
  readonly hash: Uint8Array;
}

/**
 * The siblings that prove many slots of a batch at once: all that the slots' leaves do not determine, level by level
 * from the leaves, left to right, 32 bytes each, packed. Padding is included, so a verifier need not know the end of
 * the batch.
 *
 * @param slots - strictly ascending, at least one
 * @throws MintmarkError `validation_failed` for slots that do not ascend or are not in the batch
 */
export function multiproofSiblings(tree: TreeNodes, slots: readonly number[]): Uint8Array {
  requireAscendingSlots(slots, tree.count);
  const siblings: Uint8Array[] = [];
  let known = [...slots];
  for (let height = 0; height < tree.height; height++) {
    const parents: number[] = [];
    for (let i = 0; i < known.length; i++) {
      const index = known[i] as number;
      parents.push(index >>> 1);
      if (known[i + 1] === (index ^ 1)) i++;
      else siblings.push(tree.node(height, index ^ 1));
    }
    known = parents;
  }
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
  if (leaves.length !== slots.length * HASH_BYTES || siblings.length % HASH_BYTES !== 0) return null;
  const available = siblings.length / HASH_BYTES;
  let used = 0;
  let level: PlacedNode[] = slots.map((index, i) => ({ index, hash: hashAt(leaves, i) }));
  for (let height = treeHeight(count); height > 0; height--) {
    const parents: PlacedNode[] = [];
    for (let i = 0; i < level.length; i++) {
      const node = level[i] as PlacedNode;
      const next = level[i + 1];
      let sibling: Uint8Array;
      if (next?.index === (node.index ^ 1)) {
        sibling = next.hash;
        i++;
      } else if (used < available) {
        sibling = hashAt(siblings, used++);
      } else {
        return null;
      }
      const hash = (node.index & 1) === 0 ? hashNode(node.hash, sibling) : hashNode(sibling, node.hash);
      parents.push({ index: node.index >>> 1, hash });
    }
    level = parents;
  }
  return used === available && level.length === 1 ? (level[0] as PlacedNode).hash : null;
}

function requireAscendingSlots(slots: readonly number[], count: number): void {
  requireInteger("count", count, 1, MAX_BATCH_VAULTS);
  let previous = -1;
  for (const slot of slots) {
    requireInteger("slot", slot, 0, count - 1);
    if (slot <= previous) throw new MintmarkError("validation_failed", `slot ${slot} does not ascend`);
    previous = slot;
  }
  if (slots.length === 0) throw new MintmarkError("validation_failed", "a multiproof needs at least one slot");
}
