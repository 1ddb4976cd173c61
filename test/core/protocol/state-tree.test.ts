import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type Hash, MODES } from "../../../core/model.ts";
import {
  batchHeaderHash,
  emptyHistory,
  nextHistory,
  stateCommitment,
  stateLeaf,
} from "../../../core/protocol/commitment.ts";
import {
  type ConsistencyProof,
  proveBatch,
  proveConsistency,
  verifyBatchProof,
  verifyConsistency,
  verifyStateConsistency,
} from "../../../core/protocol/consistency.ts";
import { bytesToHex, hexToBytes, packHashes, unpackHashes } from "../../../core/protocol/hex.ts";
import { StateTree } from "../../../core/protocol/state-tree.ts";
import { naiveRoot, naiveSiblings } from "../naive/naive-tree.ts";
import { naiveHistory, naiveStateLeaf } from "../naive/naive-vault.ts";
import { anyHash } from "./arbitrary.ts";
import { derivedHash, SETTLEMENT, vectors } from "./vectors.ts";

const file = vectors("state-trees");
const HEIGHT = 32;
const invalid = expect.objectContaining({ code: "validation_failed" });

const leafHashes = file.leaves as Hash[];
const history = new StateTree(packHashes(leafHashes));
const rootAt = (count: number) => bytesToHex(history.root(count));

/**
 * The naive tree of height 32 over real leaves: zero subtrees are the recursion's own end, so it is
 * small.
 */
const naiveLeaves = (count: number) => leafHashes.slice(0, count).map((leaf) => hexToBytes(leaf));

describe("a state tree", () => {
  it("has the vectors' roots as it grows, and at every earlier count", () => {
    const tree = new StateTree();
    for (const { count, root } of file.states) {
      if (tree.count < Number(count)) tree.append(hexToBytes(leafHashes[tree.count] ?? "0x"));
      expect(tree.count).toBe(Number(count));
      expect(bytesToHex(tree.root())).toBe(root);
      expect(rootAt(Number(count))).toBe(root);
    }
  });

  it("has the naive twin's roots", () => {
    for (const count of [0, 1, 2, 3, 7, 8, 19]) {
      expect(bytesToHex(naiveRoot(naiveLeaves(count), HEIGHT))).toBe(rootAt(count));
    }
  });

  it("has the naive twin's siblings at every position it has held, and at the next free one", () => {
    for (const count of [1, 2, 5, 8, 19]) {
      for (let position = 0; position <= count; position++) {
        const expected = naiveSiblings(naiveLeaves(count), position, HEIGHT).map(bytesToHex);
        expect(unpackHashes(history.siblings(position, count))).toEqual(expected);
      }
    }
  });

  it("continues from any earlier count as if nothing had followed", () => {
    fc.assert(
      fc.property(
        fc.array(anyHash, { maxLength: 40 }),
        fc.array(anyHash, { maxLength: 40 }),
        fc.array(anyHash, { maxLength: 10 }),
        (before, dropped, after) => {
          const tree = new StateTree(packHashes([...before, ...dropped]));
          tree.truncate(before.length);
          for (const leaf of after) tree.append(hexToBytes(leaf));
          const other = new StateTree(packHashes([...before, ...after]));
          for (let count = 0; count <= other.count; count++) {
            expect(tree.root(count)).toEqual(other.root(count));
            expect(tree.siblings(count >> 1, count)).toEqual(other.siblings(count >> 1, count));
          }
        },
      ),
      { numRuns: 60 },
    );
  });

  it("refuses leaves of another length, and to keep more than it has", () => {
    const tree = new StateTree(packHashes(leafHashes));
    expect(() => tree.append(new Uint8Array(31))).toThrow(invalid);
    expect(() => new StateTree(new Uint8Array(33))).toThrow(invalid);
    expect(() => tree.truncate(tree.count + 1)).toThrow(invalid);
  });

  it("refuses counts and positions that its history has not held", () => {
    expect(() => history.root(20)).toThrow(invalid);
    expect(() => history.siblings(6, 5)).toThrow(invalid);
    expect(() => history.siblings(-1)).toThrow(invalid);
    expect(() => history.leaf(19)).toThrow(invalid);
  });
});

describe("batch proofs", () => {
  it.each(file.batchProofs)("of batch $batchNumber", ({ oldRoot, newRoot, ...rest }) => {
    const proof = { ...rest, batchNumber: Number(rest.batchNumber) };
    expect(proveBatch(history, proof.batchNumber)).toEqual(proof);
    expect(verifyBatchProof(oldRoot, newRoot, proof)).toBe(true);
    expect(verifyBatchProof(newRoot, oldRoot, proof)).toBe(false);
    expect(verifyBatchProof(oldRoot, oldRoot, proof)).toBe(false);
    expect(
      verifyBatchProof(oldRoot, newRoot, { ...proof, batchNumber: proof.batchNumber + 1 }),
    ).toBe(false);
    expect(verifyBatchProof(oldRoot, newRoot, { ...proof, stateLeaf: derivedHash("x") })).toBe(
      false,
    );
    expect(
      verifyBatchProof(oldRoot, newRoot, { ...proof, siblings: proof.siblings.slice(0, -1) }),
    ).toBe(false);
    expect(
      verifyBatchProof(oldRoot, newRoot, { ...proof, siblings: [...proof.siblings, oldRoot] }),
    ).toBe(false);
    expect(verifyBatchProof(oldRoot, newRoot, { ...proof, batchNumber: -1 })).toBe(false);
    expect(verifyBatchProof(oldRoot, "0x12", proof)).toBe(false);
  });
});

describe("consistency proofs", () => {
  const stateOf = (root: string, count: string | number) => ({
    root: root as Hash,
    count: Number(count),
  });

  it.each(file.consistencyProofs)("from $oldCount to $newCount", (vector) => {
    const proof = vector.proof as ConsistencyProof;
    expect(proveConsistency(history, Number(vector.oldCount), Number(vector.newCount))).toEqual(
      proof,
    );
    const [older, newer] = [
      stateOf(vector.oldRoot, vector.oldCount),
      stateOf(vector.newRoot, vector.newCount),
    ];
    expect(verifyConsistency(older, newer, proof)).toBe(true);
  });

  it.each(file.refused)("refused: $name", (vector) => {
    const [older, newer] = [
      stateOf(vector.oldRoot, vector.oldCount),
      stateOf(vector.newRoot, vector.newCount),
    ];
    expect(verifyConsistency(older, newer, vector.proof as ConsistencyProof)).toBe(false);
  });

  it("hold between any two states of one tree, and between no state and a fork", () => {
    fc.assert(
      fc.property(
        fc.array(anyHash, { minLength: 1, maxLength: 30 }),
        fc.nat(),
        fc.nat(),
        (leaves, a, b) => {
          const tree = new StateTree(packHashes(leaves));
          const [oldCount, newCount] = [a % (leaves.length + 1), b % (leaves.length + 1)].sort(
            (x, y) => x - y,
          ) as [number, number];
          const older = stateOf(bytesToHex(tree.root(oldCount)), oldCount);
          const newer = stateOf(bytesToHex(tree.root(newCount)), newCount);
          const proof = proveConsistency(tree, oldCount, newCount);
          expect(verifyConsistency(older, newer, proof)).toBe(true);
          if (oldCount === 0) return;
          const fork = new StateTree(packHashes([derivedHash("fork"), ...leaves.slice(1)]));
          const forked = stateOf(bytesToHex(fork.root(newCount)), newCount);
          expect(verifyConsistency(older, forked, proof)).toBe(false);
          expect(verifyConsistency(older, forked, proveConsistency(fork, oldCount, newCount))).toBe(
            false,
          );
        },
      ),
      { numRuns: 40 },
    );
  });

  it("join two commitments of a settlement contract, both modes at once", () => {
    const rollup = new StateTree(packHashes(["r0", "r1", "r2", "r3"].map(derivedHash)));
    const stateAt = (countValidium: number, countRollup: number) => {
      const rootRollup = bytesToHex(rollup.root(countRollup));
      const state = { rootValidium: rootAt(countValidium), rootRollup, countValidium, countRollup };
      return { state, commitment: stateCommitment(SETTLEMENT, state) };
    };
    const proof = {
      validium: proveConsistency(history, 3, 11),
      rollup: proveConsistency(rollup, 2, 4),
    };
    const [older, newer] = [stateAt(3, 2), stateAt(11, 4)];
    expect(verifyStateConsistency(SETTLEMENT, older, newer, proof)).toBe(true);
    expect(verifyStateConsistency(SETTLEMENT, newer, older, proof)).toBe(false);
    expect(verifyStateConsistency(SETTLEMENT, older, stateAt(11, 3), proof)).toBe(false);
    expect(
      verifyStateConsistency(SETTLEMENT, older, { ...newer, commitment: older.commitment }, proof),
    ).toBe(false);
    expect(verifyStateConsistency({ ...SETTLEMENT, chainId: 1n }, older, newer, proof)).toBe(false);
  });
});

describe("commitments", () => {
  const commitments = vectors("commitments");

  it.each(commitments.stateLeaves)(
    "state leaf of batch $batchNumber",
    ({ batchNumber, vaultCount, dataHash, batchRoot, ...rest }) => {
      const content = {
        batchNumber: Number(batchNumber),
        vaultCount: Number(vaultCount),
        dataHash,
        batchRoot,
      };
      expect(stateLeaf(content)).toBe(rest.stateLeaf);
      expect(naiveStateLeaf(BigInt(batchNumber), Number(vaultCount), dataHash, batchRoot)).toBe(
        rest.stateLeaf,
      );
    },
  );

  it("the history begins with the commitment to the empty state of this chain and contract", () => {
    const { settlement, history: empty } = commitments.emptyHistory;
    const contract = { chainId: BigInt(settlement.chainId), contract: settlement.contract };
    const root = bytesToHex(naiveRoot([], HEIGHT));
    const roots = { rootValidium: root, rootRollup: root, countValidium: 0, countRollup: 0 };
    expect(emptyHistory(contract)).toBe(empty);
    expect(empty).toBe(stateCommitment(contract, roots));
    expect(emptyHistory({ ...contract, chainId: 1n })).not.toBe(empty);
  });

  it.each(commitments.histories)(
    "the history after commit $commits",
    ({ history: before, mode, stateLeaf: leaf, next }) => {
      const name = MODES[Number(mode)] ?? "validium";
      expect(nextHistory(before, name, leaf)).toBe(next);
      expect(naiveHistory(before, name, leaf)).toBe(next);
    },
  );

  it.each(commitments.commitments)(
    "of $countValidium and $countRollup batches",
    ({ settlement, ...vector }) => {
      const counts = {
        countValidium: Number(vector.countValidium),
        countRollup: Number(vector.countRollup),
      };
      const { chainId, contract } = settlement;
      expect(
        stateCommitment({ chainId: BigInt(chainId), contract }, { ...vector, ...counts }),
      ).toBe(vector.commitment);
    },
  );

  it.each(commitments.headers)(
    "header of sequence $sequence",
    ({ batchRoot, headerHash, ...numbers }) => {
      const { vaultCount, committedAt, sequence } = numbers;
      const header = {
        vaultCount: Number(vaultCount),
        committedAt: BigInt(committedAt),
        sequence: BigInt(sequence),
      };
      expect(batchHeaderHash({ batchRoot, ...header })).toBe(headerHash);
    },
  );

  it("refuse values out of bounds", () => {
    expect(() => nextHistory("0x12", "validium", derivedHash("l"))).toThrow(invalid);
    expect(() => nextHistory(derivedHash("h"), "validium", "0x12")).toThrow(invalid);
    const content = {
      batchNumber: 0,
      vaultCount: 1,
      dataHash: derivedHash("d"),
      batchRoot: derivedHash("r"),
    };
    expect(() => stateLeaf({ ...content, batchNumber: 2 ** 32 })).toThrow(invalid);
    expect(() => stateLeaf({ ...content, vaultCount: 0 })).toThrow(invalid);
    expect(() => stateLeaf({ ...content, vaultCount: 2 ** 20 + 1 })).toThrow(invalid);
    expect(() => stateLeaf({ ...content, dataHash: "0x12" })).toThrow(invalid);
    const header = { batchRoot: derivedHash("r"), vaultCount: 1, committedAt: 0n, sequence: 0n };
    expect(() => batchHeaderHash({ ...header, committedAt: 1n << 64n })).toThrow(invalid);
    expect(() => batchHeaderHash({ ...header, sequence: -1n })).toThrow(invalid);
    expect(() => batchHeaderHash({ ...header, vaultCount: 0 })).toThrow(invalid);
    const roots = {
      rootValidium: rootAt(0),
      rootRollup: rootAt(0),
      countValidium: 0,
      countRollup: 0,
    };
    expect(() => stateCommitment(SETTLEMENT, { ...roots, countRollup: 2 ** 32 })).toThrow(invalid);
    expect(() => stateCommitment({ ...SETTLEMENT, chainId: 1n << 64n }, roots)).toThrow(invalid);
    expect(() => stateCommitment({ ...SETTLEMENT, contract: "0x12" }, roots)).toThrow(invalid);
  });
});
