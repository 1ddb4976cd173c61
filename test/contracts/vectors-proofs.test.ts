import fc from "fast-check";
import { network } from "hardhat";
import { bytesToHex, toHex, zeroHash } from "viem";
import { afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import type { Hash } from "../../core/model.ts";
import { batchLeaves, placeVaults, wordBatch } from "../../core/protocol/batch-data.ts";
import { BatchTree } from "../../core/protocol/batch-tree.ts";
import {
  proveBatch,
  proveConsistency,
  verifyBatchProof,
  verifyConsistency,
} from "../../core/protocol/consistency.ts";
import { packHashes } from "../../core/protocol/hex.ts";
import {
  proveVault,
  proveVaults,
  verifyVaultMultiproof,
  verifyVaultProof,
} from "../../core/protocol/proof.ts";
import { StateTree } from "../../core/protocol/state-tree.ts";
import { anyHash, anySlots } from "../core/protocol/arbitrary.ts";
import { type ConsistencyVector, tooManySlots, vectors } from "../core/protocol/vectors.ts";
import * as batches from "./fixture/batches.ts";
import { type Deployment, openChain } from "./fixture/deployment.ts";
import { transferBatchArgs } from "./fixture/transfers.ts";
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
        expect(await harness.read.foldMany([positions, leaves, BigInt(count), siblings])).toEqual([
          root,
          true,
        ]);
      }
    },
  );
});

describe("Solidity and the vectors agree on vault proofs:", () => {
  const {
    header,
    headerHash,
    settlement,
    statePath,
    commitment,
    proofs,
    multiproofs,
    refused,
    refusedMultiproofs,
  } = vectors("vault-proofs");
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
      const { assetIndex } = inTrees;
      expect(await harness.read.vaultLeaf([content, BigInt(assetIndex)])).toBe(leaf);
      expect(
        await harness.read.verifyVault([content, header.batchRoot, Number(vaultCount), inTrees]),
      ).toBe(true);
      const inBatch = [content, Number(vaultCount), inTrees] as const;
      expect(await harness.read.verifyVaultInState([...inBatch, path, ...source, commitment])).toBe(
        true,
      );
      const wrongPaths = [
        { ...path, siblings: path.siblings.slice(1) },
        { ...path, siblings: [...path.siblings, zeroHash] },
        { ...path, siblings: path.siblings.toReversed() },
        { ...path, countValidium: path.countValidium + 1n },
        { ...path, countValidium: 5n },
      ];
      for (const wrong of wrongPaths) {
        expect(
          await harness.read.verifyVaultInState([...inBatch, wrong, ...source, commitment]),
        ).toBe(false);
      }
      expect(await harness.read.verifyVaultInState([...inBatch, path, ...source, headerHash])).toBe(
        false,
      );
    },
  );

  it.each(refused)("none for $name", async ({ name, batchRoot, vault, vaultCount, ...proof }) => {
    const [content, count, inTrees] = [
      vaultStruct(vault),
      Number(vaultCount),
      vaultPathStruct(proof),
    ] as const;
    expect(await harness.read.verifyVault([content, batchRoot, count, inTrees])).toBe(false);
    // The way to the commitment takes no batch root from anyone, so there a wrong one is no lie.
    if (WRONG_ROOTS.includes(name)) return;
    expect(
      await harness.read.verifyVaultInState([content, count, inTrees, path, ...source, commitment]),
    ).toBe(false);
  });

  /** Where each vault's asset stands in the manifest; 0 for one that is not there. */
  const placesIn = async (
    manifest: readonly Hash[],
    contents: readonly ReturnType<typeof vaultStruct>[],
  ) =>
    Promise.all(
      contents.map(async ({ chainId, assetType }) =>
        Math.max(0, manifest.indexOf(await harness.read.manifestLeaf([chainId, assetType]))),
      ),
    );

  it.each(multiproofs)(
    "many vaults at once",
    async ({ vaults, vaultCount, siblings, manifest }) => {
      const contents = vaults.map(vaultStruct);
      const verify = async (
        what: typeof contents,
        count = Number(vaultCount),
        given: readonly Hash[] = siblings,
      ) =>
        harness.read.verifyVaults([
          what,
          header.batchRoot,
          count,
          given,
          manifest,
          await placesIn(manifest, what),
        ]);
      expect(await verify(contents)).toBe(true);
      const places = await placesIn(manifest, contents);
      const honest = [contents, header.batchRoot, Number(vaultCount), siblings, manifest] as const;
      expect(await harness.read.verifyVaults([...honest, places.slice(1)])).toBe(false);
      expect(await harness.read.verifyVaults([...honest, places.map(() => manifest.length)])).toBe(
        false,
      );
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
    },
  );

  it.each(refusedMultiproofs)(
    "many at once, none for $name",
    async ({ vaults, vaultCount, siblings, manifest }) => {
      const contents = vaults.map(vaultStruct);
      const places = await placesIn(manifest, contents);
      const proof = [
        contents,
        header.batchRoot,
        Number(vaultCount),
        siblings,
        manifest,
        places,
      ] as const;
      expect(await harness.read.verifyVaults(proof)).toBe(false);
    },
  );
});

describe("Solidity and the vectors agree on the state tree:", () => {
  const { batchProofs, consistencyProofs, refused } = vectors("state-trees");
  const consistent = ({ oldRoot, oldCount, newRoot, newCount, proof }: ConsistencyVector) => {
    const { leaf, atOld, atNew } = proof ?? { leaf: zeroHash, atOld: [], atNew: [] };
    return harness.read.verifyConsistency([
      oldRoot,
      BigInt(oldCount),
      newRoot,
      BigInt(newCount),
      leaf,
      atOld,
      atNew,
    ]);
  };

  it.each(batchProofs)(
    "batch $batchNumber",
    async ({ oldRoot, newRoot, batchNumber, stateLeaf, siblings }) => {
      const verify = (at: bigint, path: readonly Hash[]) =>
        harness.read.verifyBatch([oldRoot, newRoot, at, stateLeaf, path]);
      const number = BigInt(batchNumber);
      expect(await verify(number, siblings)).toBe(true);
      expect(await verify(number + (1n << 32n), siblings)).toBe(false);
      expect(await verify(number, siblings.slice(0, -1))).toBe(false);
      expect(await verify(number, [...siblings, zeroHash])).toBe(false);
    },
  );

  it.each(consistencyProofs)("$newCount batches after $oldCount", async (vector) => {
    expect(await consistent(vector)).toBe(true);
    expect(await consistent({ ...vector, newCount: String(2n ** 32n) })).toBe(false);
    if (vector.proof !== null) expect(await consistent({ ...vector, proof: null })).toBe(false);
    else {
      expect(await consistent({ ...vector, newRoot: zeroHash })).toBe(false);
      const nothing = { leaf: zeroHash, atOld: [], atNew: [] };
      for (const surplus of [
        { leaf: vector.newRoot },
        { atOld: [zeroHash] },
        { atNew: [zeroHash] },
      ]) {
        expect(await consistent({ ...vector, proof: { ...nothing, ...surplus } })).toBe(false);
      }
    }
  });

  it.each(refused)("nothing for $name", async (vector) => {
    expect(await consistent(vector)).toBe(false);
  });
});

describe("Solidity and the core agree on proofs", () => {
  /** One bit of one of the hashes is another, or there is a hash too many. */
  const changed = (hashes: readonly Hash[], n: number): Hash[] =>
    n % 5 === 0
      ? [...hashes, zeroHash]
      : hashes.map((hash, i) => (i === n % hashes.length ? flipped(hash, n) : hash));
  const flipped = (hash: Hash, n: number): Hash =>
    toHex(BigInt(hash) ^ (1n << BigInt(n % 256)), { size: 32 });
  const seen = { true: 0, false: 0 };
  const count = (holds: boolean) => {
    seen[`${holds}`]++;
    return holds;
  };

  it("of any vaults of any batch, with anything changed", async () => {
    const property = fc.asyncProperty(
      anySlots,
      fc.nat(),
      // Nothing is changed from 11 on.
      fc.nat(15),
      fc.nat(),
      async (slots, which, kind, n) => {
        const present = placeVaults(slots, "zk-rollup", 5).filter((vault) => vault !== null);
        if (present.length === 0 || present.length > 60) return;
        const batch = {
          tree: new BatchTree(batchLeaves(wordBatch(slots), "zk-rollup", 5)),
          assets: batches.assetsIn(slots),
        };
        const sealed = batches.sealedRoot("zk-rollup", batch.assets, bytesToHex(batch.tree.root));
        const root = kind === 0 ? flipped(sealed, n) : sealed;
        const vaultCount = kind === 1 ? n % 70 : batch.tree.count;
        const change = (of: (typeof present)[number]) => ({
          ...of,
          ...(kind === 2 && { vaultId: of.vaultId ^ (1n << BigInt(n % 52)) }),
          ...(kind === 3 && { chainId: of.chainId ^ 1n }),
          ...(kind === 4 && {
            owner: toHex(BigInt(of.owner) ^ (1n << BigInt(n % 160)), { size: 20 }),
          }),
          ...(kind === 5 && { assetType: flipped(of.assetType, n % 250) }),
          ...(kind === 6 && { amount: 1n + (of.amount ^ BigInt(n)) }),
          ...(kind === 7 &&
            of.mintingBlob.length < 500 && { mintingBlob: `${of.mintingBlob}00` as Hash }),
        });
        const chosen = present[which % present.length] as (typeof present)[number];
        const honest = proveVault(batch, chosen);
        const { index, siblings: named } = honest.assetPath;
        const proof = {
          vault: change(chosen),
          vaultCount,
          siblings: kind === 8 ? changed(honest.siblings, n) : honest.siblings,
          assetPath: {
            index: kind === 9 ? index ^ (n % 8) : index,
            siblings: kind === 10 ? changed(named, n) : named,
          },
        };
        const one = harness.read.verifyVault([
          batches.toStruct(proof.vault),
          root,
          vaultCount,
          batches.pathOf(proof),
        ]);
        expect(await one).toBe(count(verifyVaultProof(root, proof)));
        const some = present.filter(
          (vault, i) => vault === chosen || (which >> (i % 31)) % 2 === 1,
        );
        const { siblings, manifest } = proveVaults(batch, some);
        const many = {
          vaults: some.map((vault) => (vault === chosen ? change(vault) : vault)),
          vaultCount,
          siblings: kind === 8 ? changed(siblings, n) : siblings,
          manifest: kind === 10 ? changed(manifest, n) : manifest,
        };
        const leaves = many.vaults.map(({ chainId, assetType }) =>
          harness.read.manifestLeaf([chainId, BigInt(assetType)]),
        );
        const places = (await Promise.all(leaves)).map((leaf) =>
          Math.max(0, many.manifest.indexOf(leaf)),
        );
        const all = [
          many.vaults.map(batches.toStruct),
          root,
          vaultCount,
          many.siblings,
          many.manifest,
          places,
        ] as const;
        expect(await harness.read.verifyVaults(all)).toBe(count(verifyVaultMultiproof(root, many)));
      },
    );
    await fc.assert(property, { numRuns: 150 });
    expect(Math.min(seen.true, seen.false)).toBeGreaterThan(30);
  });

  it("of any states of one mode, with anything changed", async () => {
    const leaves = fc.array(anyHash, { minLength: 1, maxLength: 20 });
    const property = fc.asyncProperty(
      leaves,
      fc.nat(),
      fc.nat(5),
      fc.nat(),
      async (hashes, which, kind, n) => {
        const history = new StateTree(packHashes(hashes));
        const [number, newest] = [which % hashes.length, hashes.length];
        const rootOf = (at: number, isChanged: boolean) => {
          const root = bytesToHex(history.root(at));
          return isChanged ? flipped(root, n) : root;
        };
        const [older, newer] = [rootOf(number, kind === 0), rootOf(number + 1, kind === 1)];
        const step = proveBatch(history, number);
        const batch = {
          batchNumber: kind === 2 ? number + (n % 3) : number,
          stateLeaf: kind === 3 ? flipped(step.stateLeaf, n) : step.stateLeaf,
          siblings: kind === 4 ? changed(step.siblings, n) : step.siblings,
        };
        const args = [
          older,
          newer,
          BigInt(batch.batchNumber),
          batch.stateLeaf,
          batch.siblings,
        ] as const;
        expect(await harness.read.verifyBatch(args)).toBe(
          count(verifyBatchProof(older, newer, batch)),
        );
        const path = proveConsistency(history, number, newest);
        if (path === null) throw new Error("a batch came after the older state");
        const [from, to] = [rootOf(number, kind === 0), rootOf(newest, kind === 1)];
        const proof = {
          leaf: kind === 3 ? flipped(path.leaf, n) : path.leaf,
          atOld: kind === 4 ? changed(path.atOld, n) : path.atOld,
          atNew: kind === 5 ? changed(path.atNew, n) : path.atNew,
        };
        const [oldCount, newCount] = [number, kind === 2 ? newest - (n % 2) : newest];
        const { leaf, atOld, atNew } = proof;
        const shown = [from, BigInt(oldCount), to, BigInt(newCount), leaf, atOld, atNew] as const;
        const states = [
          { root: from, count: oldCount },
          { root: to, count: newCount },
        ] as const;
        expect(await harness.read.verifyConsistency(shown)).toBe(
          count(verifyConsistency(...states, proof)),
        );
      },
    );
    await fc.assert(property, { numRuns: 150 });
  });
});

const { fresh } = await openChain();
const { batchNumber, vectors: valid, refused } = vectors("transfers");

describe("L1 and the vectors of transfer data", () => {
  let d: Deployment;
  let restore: () => Promise<void>;
  beforeAll(async () => {
    d = await fresh();
    for (let n = 0; n < Number(batchNumber); n++) {
      await batches.commitRollup(d, [batches.entry(d.assets.coin, d.actors.owner.account.address)]);
      await batches.commitAs.validium(d, [
        batches.entry(d.assets.coin, d.actors.owner.account.address),
      ]);
    }
  });
  beforeEach(async () => {
    const snapshot = await d.connection.networkHelpers.takeSnapshot();
    restore = () => snapshot.restore();
  });
  afterEach(() => restore());

  it.each(valid)("$name has the root of the core", async ({ data, dataHash, slots, batchRoot }) => {
    const args = await transferBatchArgs(d, data);
    const hash = await d.state.write.commitTransferBatch(args, d.by("operator"));
    expect((await batches.committedEvent(d, hash)).args).toMatchObject({
      batchRoot,
      vaultCount: Number(slots),
      dataHash,
    });
  });

  it.each(refused)("$name is refused", async ({ reason, data }) => {
    const name =
      { spent_twice: "Spent(", vault_id: "BatchUnknown(" }[reason] ?? "TransferDataInvalid(";
    const [history, number] = [await d.state.read.history(), BigInt(batchNumber)];
    await expect(
      d.state.simulate.commitTransferBatch([history, number, data, "0x"], {
        account: d.actors.operator.account.address,
      }),
    ).rejects.toThrow(name);
  });

  it.each(["", "0000000000000001"])(
    "too many slots, with amount '%s', are refused",
    async (amount) => {
      const args = [
        await d.state.read.history(),
        BigInt(batchNumber),
        tooManySlots(amount),
        "0x",
      ] as const;
      await expect(
        d.state.simulate.commitTransferBatch(args, { account: d.actors.operator.account.address }),
      ).rejects.toThrow("TransferDataInvalid(");
    },
  );
});
