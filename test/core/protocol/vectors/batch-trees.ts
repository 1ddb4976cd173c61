import { BatchTree } from "../../../../core/protocol/batch-tree.ts";
import { bytesToHex, unpackHashes } from "../../../../core/protocol/hex.ts";
import { zeroRoot } from "../../../../core/protocol/merkle.ts";
import { multiproofSiblings } from "../../../../core/protocol/multiproof.ts";
import { derivedBytes } from "./derive.ts";

const COUNTS = [1, 2, 3, 4, 5, 6, 7, 8, 9, 13, 16, 17, 31, 33, 64, 65];
/** Slots of the larger batches that are void. */
const VOID_SLOTS = new Set([2, 15]);

/** Roots, proofs and multiproofs of batch trees over made-up leaves. */
export function batchTreeVectors() {
  return {
    description:
      "Batch trees (docs/protocol.md 2, 7). `zeroRoots`: Z[0] to Z[32]. `vectors`: leaves (a zero leaf is a void slot), root, siblings of some " +
      "slots from the leaf upwards, multiproofs of some sets of slots.",
    zeroRoots: Array.from({ length: 33 }, (_, height) => bytesToHex(zeroRoot(height))),
    vectors: COUNTS.map((count) => {
      const leaves = new Uint8Array(count * 32);
      for (let slot = 0; slot < count; slot++) {
        if (!VOID_SLOTS.has(slot)) leaves.set(derivedBytes(`leaf ${slot} of ${count}`), slot * 32);
      }
      const tree = new BatchTree(leaves);
      const slots = [...new Set([0, 1, Math.floor(count / 2), count - 2, count - 1])].filter(
        (s) => s >= 0 && s < count,
      );
      return {
        count,
        height: tree.height,
        leaves: unpackHashes(leaves),
        root: bytesToHex(tree.root),
        proofs: slots.map((slot) => ({
          slot,
          leaf: bytesToHex(tree.leaf(slot)),
          siblings: unpackHashes(tree.siblings(slot)),
        })),
        multiproofs: slotSets(count).map((set) => ({
          slots: set,
          leaves: set.map((slot) => bytesToHex(tree.leaf(slot))),
          siblings: unpackHashes(multiproofSiblings(tree, set)),
        })),
      };
    }),
  };
}

function slotSets(count: number): number[][] {
  const all = Array.from({ length: count }, (_, slot) => slot);
  const sets = [[count - 1], all, all.filter((slot) => slot % 2 === 1), all.filter((slot) => slot % 3 === 0)];
  const distinct = new Map(sets.filter((set) => set.length > 0).map((set) => [set.join(), set]));
  return [...distinct.values()];
}
