import { network } from "hardhat";
import { zeroHash } from "viem";
import { describe, expect, it } from "vitest";
import type { Hash } from "../../core/model.ts";
import { type ConsistencyVector, vectors } from "../core/protocol/vectors.ts";
import { headerStruct, pathStruct, vaultPathStruct, vaultStruct } from "./fixture/vectors.ts";

/** Vectors in which only the root that the proof is shown under is wrong. */
const WRONG_ROOTS = [
  "another batch's root",
  "the content shown as the batch root",
  "the manifest of another kind",
  "a manifest that leaves the asset out",
];

const { viem } = await network.create("local");
const harness = await viem.deployContract("ProofHarness");

describe("Solidity and the vectors agree on trees:", () => {
  const trees = vectors("batch-trees");

  it("zero subtrees", async () => {
    for (const [height, root] of trees.zeroRoots.slice(0, -1).entries()) {
      expect(await harness.read.node([root, root])).toBe(trees.zeroRoots[height + 1]);
    }
  });

  it.each(trees.vectors)(
    "proofs and multiproofs in a batch of $count",
    async ({ count, root, proofs, multiproofs }) => {
      for (const { slot, leaf, siblings } of proofs) {
        expect(await harness.read.fold([leaf, BigInt(slot), siblings])).toBe(root);
      }
      for (const { slots, leaves, siblings } of multiproofs) {
        const positions = slots.map(BigInt);
        expect(await harness.read.foldMany([positions, leaves, BigInt(count), siblings])).toEqual([root, true]);
      }
    },
  );
});

describe("Solidity and the vectors agree on vault proofs:", () => {
  const { header, headerHash, settlement, statePath, commitment, proofs, multiproofs, refused, refusedMultiproofs } =
    vectors("vault-proofs");
  const source = [BigInt(settlement.chainId), settlement.contract] as const;
  const path = pathStruct(statePath);

  it("the header", async () => {
    expect(await harness.read.headerHash([headerStruct(header)])).toBe(headerHash);
  });

  it.each(proofs)(
    "vault $vault.vaultId, in its batch and in the state",
    async ({ vault, vaultCount, leaf, ...proof }) => {
      const content = vaultStruct(vault);
      const inTrees = vaultPathStruct(proof);
      expect(await harness.read.vaultLeaf([content])).toBe(leaf);
      expect(await harness.read.verifyVault([content, header.batchRoot, Number(vaultCount), inTrees])).toBe(true);
      const inBatch = [content, Number(vaultCount), inTrees] as const;
      expect(await harness.read.verifyVaultInState([...inBatch, path, ...source, commitment])).toBe(true);
      const wrongPaths = [
        { ...path, siblings: path.siblings.slice(1) },
        { ...path, siblings: [...path.siblings, zeroHash] },
        { ...path, siblings: path.siblings.toReversed() },
        { ...path, countValidium: path.countValidium + 1n },
        { ...path, countValidium: 5n },
      ];
      for (const wrong of wrongPaths) {
        expect(await harness.read.verifyVaultInState([...inBatch, wrong, ...source, commitment])).toBe(false);
      }
      expect(await harness.read.verifyVaultInState([...inBatch, path, ...source, headerHash])).toBe(false);
    },
  );

  it.each(refused)("none for $name", async ({ name, batchRoot, vault, vaultCount, ...proof }) => {
    const [content, count, inTrees] = [vaultStruct(vault), Number(vaultCount), vaultPathStruct(proof)] as const;
    expect(await harness.read.verifyVault([content, batchRoot, count, inTrees])).toBe(false);
    // The way to the commitment takes no batch root from anyone, so there a wrong one is no lie.
    if (WRONG_ROOTS.includes(name)) return;
    expect(await harness.read.verifyVaultInState([content, count, inTrees, path, ...source, commitment])).toBe(false);
  });

  /** Where each vault's asset stands in the manifest; 0 for one that is not there. */
  const placesIn = async (manifest: readonly Hash[], contents: readonly ReturnType<typeof vaultStruct>[]) =>
    Promise.all(
      contents.map(async ({ chainId, assetType }) =>
        Math.max(0, manifest.indexOf(await harness.read.manifestLeaf([chainId, assetType]))),
      ),
    );

  it.each(multiproofs)("many vaults at once", async ({ vaults, vaultCount, siblings, manifest }) => {
    const contents = vaults.map(vaultStruct);
    const verify = async (what: typeof contents, count = Number(vaultCount), given: readonly Hash[] = siblings) =>
      harness.read.verifyVaults([what, header.batchRoot, count, given, manifest, await placesIn(manifest, what)]);
    expect(await verify(contents)).toBe(true);
    const places = await placesIn(manifest, contents);
    const honest = [contents, header.batchRoot, Number(vaultCount), siblings, manifest] as const;
    expect(await harness.read.verifyVaults([...honest, places.slice(1)])).toBe(false);
    expect(await harness.read.verifyVaults([...honest, places.map(() => manifest.length)])).toBe(false);
    if (manifest.length > 1) {
      const moved = places.map((place) => (place + 1) % manifest.length);
      expect(await harness.read.verifyVaults([...honest, moved])).toBe(false);
    }
    expect(await verify([])).toBe(false);
    expect(await verify(contents, undefined, siblings.slice(1))).toBe(siblings.length === 0);
    expect(await verify(contents, 64)).toBe(false);
    expect(await verify(contents, 2 ** 20 + 1)).toBe(false);
    expect(await verify(contents, 0)).toBe(false);
    if (contents.length > 1) expect(await verify(contents.slice(1))).toBe(false);
  });

  it.each(refusedMultiproofs)("many at once, none for $name", async ({ vaults, vaultCount, siblings, manifest }) => {
    const contents = vaults.map(vaultStruct);
    const places = await placesIn(manifest, contents);
    const proof = [contents, header.batchRoot, Number(vaultCount), siblings, manifest, places] as const;
    expect(await harness.read.verifyVaults(proof)).toBe(false);
  });
});

describe("Solidity and the vectors agree on the state tree:", () => {
  const { batchProofs, consistencyProofs, refused } = vectors("state-trees");
  const consistent = ({ oldRoot, oldCount, newRoot, newCount, proof }: ConsistencyVector) => {
    const { leaf, atOld, atNew } = proof ?? { leaf: zeroHash, atOld: [], atNew: [] };
    return harness.read.verifyConsistency([oldRoot, BigInt(oldCount), newRoot, BigInt(newCount), leaf, atOld, atNew]);
  };

  it.each(batchProofs)("batch $batchNumber", async ({ oldRoot, newRoot, batchNumber, stateLeaf, siblings }) => {
    const verify = (at: bigint, path: readonly Hash[]) =>
      harness.read.verifyBatch([oldRoot, newRoot, at, stateLeaf, path]);
    const number = BigInt(batchNumber);
    expect(await verify(number, siblings)).toBe(true);
    expect(await verify(number + (1n << 32n), siblings)).toBe(false);
    expect(await verify(number, siblings.slice(0, -1))).toBe(false);
    expect(await verify(number, [...siblings, zeroHash])).toBe(false);
  });

  it.each(consistencyProofs)("$newCount batches after $oldCount", async (vector) => {
    expect(await consistent(vector)).toBe(true);
    expect(await consistent({ ...vector, newCount: String(2n ** 32n) })).toBe(false);
    if (vector.proof !== null) expect(await consistent({ ...vector, proof: null })).toBe(false);
    else {
      expect(await consistent({ ...vector, newRoot: zeroHash })).toBe(false);
      const nothing = { leaf: zeroHash, atOld: [], atNew: [] };
      for (const surplus of [{ leaf: vector.newRoot }, { atOld: [zeroHash] }, { atNew: [zeroHash] }]) {
        expect(await consistent({ ...vector, proof: { ...nothing, ...surplus } })).toBe(false);
      }
    }
  });

  it.each(refused)("nothing for $name", async (vector) => {
    expect(await consistent(vector)).toBe(false);
  });
});
