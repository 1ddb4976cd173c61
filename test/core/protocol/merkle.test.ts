import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Hash } from "../../../core/model.ts";
import { BatchTree, PagedBatchTree, pageOf } from "../../../core/protocol/batch-tree.ts";
import {
  bytesToHex,
  equalBytes,
  hashAt,
  hexToBytes,
  packHashes,
  unpackHashes,
} from "../../../core/protocol/hex.ts";
import { pathHolds, treeHeight, zeroRoot } from "../../../core/protocol/merkle.ts";
import { multiproofRoot, multiproofSiblings } from "../../../core/protocol/multiproof.ts";
import {
  naiveHeight,
  naiveMultiproof,
  naiveRoot,
  naiveSiblings,
  naiveZero,
} from "../naive/naive-tree.ts";
import { anyLeaves } from "./arbitrary.ts";
import { vectors } from "./vectors.ts";

const file = vectors("batch-trees");
const hex = (bytes: readonly Uint8Array[]) => bytes.map(bytesToHex);
const listOf = (leaves: Uint8Array) =>
  Array.from({ length: leaves.length / 32 }, (_, i) => hashAt(leaves, i));
const invalid = expect.objectContaining({ code: "validation_failed" });

/** Whether all leaves stand at their slots under a root. */
function multiproofHolds(root: Uint8Array, ...proof: Parameters<typeof multiproofRoot>): boolean {
  const found = multiproofRoot(...proof);
  return found !== null && equalBytes(found, root);
}

/** Made-up leaves; a few of them void. */
function leavesOf(count: number): Uint8Array {
  const leaves = new Uint8Array(count * 32);
  for (let slot = 0; slot < count; slot++)
    if (slot % 11 !== 5) new DataView(leaves.buffer).setUint32(slot * 32, slot + 1);
  return leaves;
}

describe("heights and zero subtrees", () => {
  it("are those of the naive twin", () => {
    for (let count = 1; count < 600; count++) expect(treeHeight(count)).toBe(naiveHeight(count));
    expect(treeHeight(1 << 20)).toBe(20);
    expect(treeHeight((1 << 19) + 1)).toBe(20);
    expect(file.zeroRoots).toEqual(
      Array.from({ length: 33 }, (_, height) => bytesToHex(zeroRoot(height))),
    );
    for (let height = 0; height <= 8; height++)
      expect(bytesToHex(zeroRoot(height))).toBe(bytesToHex(naiveZero(height)));
    expect(() => zeroRoot(33)).toThrow(RangeError);
  });
});

describe("a batch tree", () => {
  it.each(file.vectors)("of $count leaves", (vector) => {
    const tree = new BatchTree(packHashes(vector.leaves as Hash[]));
    const leaves = vector.leaves.map((leaf) => hexToBytes(leaf));
    expect(bytesToHex(tree.root)).toBe(vector.root);
    expect(bytesToHex(naiveRoot(leaves))).toBe(vector.root);
    expect(tree.height).toBe(Number(vector.height));
    for (const { slot, leaf, siblings } of vector.proofs) {
      expect(unpackHashes(tree.siblings(Number(slot)))).toEqual(siblings);
      expect(hex(naiveSiblings(leaves, Number(slot)))).toEqual(siblings);
      expect(
        pathHolds(tree.root, hexToBytes(leaf), Number(slot), packHashes(siblings as Hash[])),
      ).toBe(true);
    }
    for (const { slots, leaves: some, siblings } of vector.multiproofs) {
      const numbers = slots.map(Number);
      expect(hex(naiveMultiproof(leaves, numbers))).toEqual(siblings);
      const packed = packHashes(siblings as Hash[]);
      expect(
        multiproofHolds(tree.root, tree.count, numbers, packHashes(some as Hash[]), packed),
      ).toBe(true);
    }
  });

  it("has the naive twin's root and siblings, whatever its leaves", () => {
    fc.assert(
      fc.property(anyLeaves(70), fc.nat(), (leaves, at) => {
        const tree = new BatchTree(leaves);
        const slot = at % tree.count;
        expect(bytesToHex(tree.root)).toBe(bytesToHex(naiveRoot(listOf(leaves))));
        expect(unpackHashes(tree.siblings(slot))).toEqual(hex(naiveSiblings(listOf(leaves), slot)));
      }),
      { numRuns: 60 },
    );
  });

  it("refuses slots that it does not have, and no leaves at all", () => {
    const tree = new BatchTree(leavesOf(5));
    for (const slot of [-1, 5, 7, 0.5, Number.NaN])
      expect(() => tree.siblings(slot)).toThrow(invalid);
    expect(() => new BatchTree(new Uint8Array())).toThrow(invalid);
    expect(() => new BatchTree(new Uint8Array(33))).toThrow(invalid);
    expect(() => new BatchTree(new Uint8Array(((1 << 20) + 1) * 32))).toThrow(invalid);
  });

  it("never returns a proof that does not lead to its root", () => {
    const leaves = leavesOf(9);
    const tree = new BatchTree(leaves);
    leaves[40] = 0xff;
    expect(() => tree.siblings(0)).toThrow(/Mintmark is at fault/);
  });
});

describe("a paged batch tree", () => {
  it("gives the siblings of the whole tree from page roots and one page", () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 600 }),
        fc.integer({ min: 0, max: 10 }),
        fc.nat(),
        (count, pageHeight, at) => {
          const leaves = leavesOf(count);
          const tree = new BatchTree(leaves);
          const paged = new PagedBatchTree(count, tree.pageRoots(pageHeight), pageHeight);
          const slot = at % count;
          const { firstSlot, leafCount } = pageOf(count, slot, pageHeight);
          const page = leaves.subarray(firstSlot * 32, (firstSlot + leafCount) * 32);
          expect(bytesToHex(paged.root)).toBe(bytesToHex(tree.root));
          expect(unpackHashes(paged.siblings(slot, page))).toEqual(
            unpackHashes(tree.siblings(slot)),
          );
        },
      ),
      { numRuns: 100 },
    );
  });

  it("refuses a page that does not match its root", () => {
    const leaves = leavesOf(300);
    const paged = new PagedBatchTree(300, new BatchTree(leaves).pageRoots());
    const page = leaves.slice(256 * 32);
    expect(() => paged.siblings(0, page)).toThrow(invalid);
    page[5] = 0xff;
    expect(() => paged.siblings(299, page)).toThrow(
      expect.objectContaining({ code: "store_corrupt" }),
    );
    expect(() => paged.siblings(300, page)).toThrow(invalid);
    expect(() => new PagedBatchTree(300, new Uint8Array(32))).toThrow(invalid);
  });
});

describe("a multiproof", () => {
  const anyCase = fc
    .integer({ min: 1, max: 70 })
    .chain((count) =>
      fc.tuple(fc.constant(count), fc.subarray([...Array(count).keys()], { minLength: 1 })),
    );

  it("has the naive twin's siblings, and holds", () => {
    fc.assert(
      fc.property(anyCase, ([count, slots]) => {
        const leaves = leavesOf(count);
        const tree = new BatchTree(leaves);
        const siblings = multiproofSiblings(tree, slots);
        expect(unpackHashes(siblings)).toEqual(hex(naiveMultiproof(listOf(leaves), slots)));
        expect(multiproofHolds(tree.root, count, slots, leavesAt(leaves, slots), siblings)).toBe(
          true,
        );
      }),
      { numRuns: 80 },
    );
  });

  it("does not hold with a changed leaf, sibling, slot or count, nor truncated or extended", () => {
    fc.assert(
      fc.property(anyCase, fc.nat(), ([count, slots], at) => {
        const leaves = leavesOf(count);
        const tree = new BatchTree(leaves);
        const siblings = multiproofSiblings(tree, slots);
        const some = leavesAt(leaves, slots);
        const changed = (bytes: Uint8Array) =>
          bytes.map((byte, i) => (i === at % bytes.length ? byte ^ 1 : byte));
        expect(multiproofHolds(tree.root, count, slots, changed(some), siblings)).toBe(false);
        expect(multiproofHolds(changed(tree.root), count, slots, some, siblings)).toBe(false);
        expect(
          multiproofHolds(
            tree.root,
            count,
            slots,
            some,
            packHashes([...unpackHashes(siblings), bytesToHex(zeroRoot(0))]),
          ),
        ).toBe(false);
        expect(multiproofHolds(tree.root, count, slots, some.subarray(32), siblings)).toBe(false);
        if (siblings.length > 0) {
          expect(multiproofHolds(tree.root, count, slots, some, changed(siblings))).toBe(false);
          expect(multiproofHolds(tree.root, count, slots, some, siblings.subarray(32))).toBe(false);
          expect(multiproofHolds(tree.root, count, slots, some, siblings.subarray(0, -32))).toBe(
            false,
          );
        }
        const shifted = slots.map((slot) => slot + 1);
        if (shifted.every((slot) => slot < count)) {
          expect(multiproofHolds(tree.root, count, shifted, some, siblings)).toBe(false);
        }
        expect(multiproofHolds(tree.root, count * 2 + 1, slots, some, siblings)).toBe(false);
      }),
      { numRuns: 80 },
    );
  });

  it("refuses slots that do not ascend, or are not in the batch", () => {
    const tree = new BatchTree(leavesOf(8));
    for (const slots of [[], [1, 1], [2, 1], [8], [-1], [0.5]]) {
      expect(() => multiproofSiblings(tree, slots)).toThrow(invalid);
      expect(() =>
        multiproofHolds(tree.root, 8, slots, leavesOf(slots.length), new Uint8Array()),
      ).toThrow(invalid);
    }
  });

  function leavesAt(leaves: Uint8Array, slots: readonly number[]): Uint8Array {
    return packHashes(slots.map((slot) => bytesToHex(hashAt(leaves, slot))));
  }
});
