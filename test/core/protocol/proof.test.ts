import { describe, expect, it } from "vitest";
import type { Hash, Mode } from "../../../core/model.ts";
import type { VaultContent, VaultProof } from "../../../core/ports.ts";
import { batchLeaves, decodeBatch, placeVaults } from "../../../core/protocol/batch-data.ts";
import { BatchTree } from "../../../core/protocol/batch-tree.ts";
import { batchHeaderHash, stateLeaf } from "../../../core/protocol/commitment.ts";
import { bytesToHex, hexToBytes } from "../../../core/protocol/hex.ts";
import { manifestRoot, batchRoot as rootOf } from "../../../core/protocol/manifest.ts";
import {
  proveVault,
  proveVaults,
  type StatePath,
  type VaultMultiproof,
  verifyVaultInState,
  verifyVaultMultiproof,
  verifyVaultProof,
} from "../../../core/protocol/proof.ts";
import type { MultiproofVector, ProofVector } from "./vectors.ts";
import { contentOf, derivedHash, SETTLEMENT, vectors } from "./vectors.ts";

const file = vectors("vault-proofs");
const root = file.header.batchRoot as Hash;
const path: StatePath = {
  ...file.statePath,
  siblings: file.statePath.siblings as Hash[],
  countValidium: Number(file.statePath.countValidium),
  countRollup: Number(file.statePath.countRollup),
};
const { slots, assets, words } = decodeBatch(hexToBytes(file.data));
const vaults = placeVaults(slots, file.mode as Mode, Number(file.batchNumber));
const present = vaults.filter((vault) => vault !== null);
const tree = new BatchTree(batchLeaves({ words }, file.mode, Number(file.batchNumber)));
const batch = { tree, assets };
const invalid = expect.objectContaining({ code: "validation_failed" });
const WRONG_ROOTS = [
  "another batch's root",
  "the content shown as the batch root",
  "the manifest of another kind",
  "a manifest that leaves the asset out",
];

function proofOf(vector: ProofVector): VaultProof {
  return {
    vault: contentOf(vector.vault),
    vaultCount: Number(vector.vaultCount),
    siblings: vector.siblings as Hash[],
    assetPath: {
      index: Number(vector.assetPath.index),
      siblings: vector.assetPath.siblings as Hash[],
    },
  };
}

function multiproofOf(vector: MultiproofVector): VaultMultiproof {
  return {
    vaults: vector.vaults.map(contentOf),
    vaultCount: Number(vector.vaultCount),
    siblings: vector.siblings as Hash[],
    manifest: vector.manifest as Hash[],
  };
}

describe("vault proofs", () => {
  it.each(file.proofs)("vault $vault.vaultId", (vector) => {
    const proof = proofOf(vector);
    expect(proveVault(batch, proof.vault)).toEqual(proof);
    expect(verifyVaultProof(root, proof)).toBe(true);
    expect(verifyVaultInState(SETTLEMENT, file.commitment, proof, path)).toBe(true);
  });

  it.each(file.refused)("refused: $name", (vector) => {
    const proof = proofOf(vector);
    expect(verifyVaultProof(vector.batchRoot, proof)).toBe(false);
    expect(verifyVaultInState(SETTLEMENT, file.commitment, proof, path)).toBe(
      // These are wrong only in the root they are shown under.
      WRONG_ROOTS.includes(vector.name),
    );
  });

  it("never prove the vault of another slot", () => {
    for (const mine of present) {
      const { siblings, assetPath } = proveVault(batch, mine);
      for (const other of present) {
        const isSame = other.vaultId === mine.vaultId;
        expect(
          verifyVaultProof(root, { vault: other, vaultCount: tree.count, siblings, assetPath }),
        ).toBe(isSame);
        const renamed = { ...other, vaultId: mine.vaultId };
        expect(
          verifyVaultProof(root, { vault: renamed, vaultCount: tree.count, siblings, assetPath }),
        ).toBe(isSame);
      }
    }
  });

  it("are not made for a vault that the batch does not hold", () => {
    const [first, second] = present as [VaultContent, VaultContent];
    expect(() => proveVault(batch, { ...first, amount: 77n })).toThrow(invalid);
    expect(() => proveVault(batch, { ...first, vaultId: second.vaultId })).toThrow(invalid);
    expect(() => proveVault(batch, { ...first, vaultId: first.vaultId + 6n })).toThrow(invalid);
    expect(() => proveVault(batch, { ...first, vaultId: first.vaultId + 11n })).toThrow(invalid);
  });
});

describe("the way from a vault to the state commitment", () => {
  const proof = proofOf(file.proofs[2] as (typeof file.proofs)[0]);
  const holdsWith = (change: Partial<StatePath>) =>
    verifyVaultInState(SETTLEMENT, file.commitment, proof, { ...path, ...change });

  it("goes through the vectors' state leaf and header", () => {
    const { batchRoot, vaultCount, committedAt, sequence } = file.header;
    const header = {
      batchRoot,
      vaultCount: Number(vaultCount),
      committedAt: BigInt(committedAt),
      sequence: BigInt(sequence),
    };
    expect(batchHeaderHash(header)).toBe(file.headerHash);
    const content = {
      batchNumber: 5,
      vaultCount: header.vaultCount,
      dataHash: path.dataHash,
      batchRoot,
    };
    expect(stateLeaf(content)).toBe(file.stateLeaf);
    expect(rootOf("validium", manifestRoot(assets), bytesToHex(tree.root))).toBe(batchRoot);
  });

  it("is refused with anything changed", () => {
    expect(holdsWith({})).toBe(true);
    expect(holdsWith({ dataHash: derivedHash("x") })).toBe(false);
    expect(holdsWith({ otherRoot: derivedHash("x") })).toBe(false);
    expect(holdsWith({ countValidium: path.countValidium + 1 })).toBe(false);
    expect(holdsWith({ countRollup: path.countRollup + 1 })).toBe(false);
    expect(holdsWith({ countValidium: 5 })).toBe(false);
    expect(holdsWith({ siblings: path.siblings.slice(1) })).toBe(false);
    expect(holdsWith({ siblings: [...path.siblings, derivedHash("x")] })).toBe(false);
    expect(holdsWith({ siblings: path.siblings.toReversed() })).toBe(false);
    expect(verifyVaultInState({ ...SETTLEMENT, chainId: 1n }, file.commitment, proof, path)).toBe(
      false,
    );
    expect(verifyVaultInState(SETTLEMENT, derivedHash("x"), proof, path)).toBe(false);
  });
});

describe("multiproofs of vaults", () => {
  it.each(file.multiproofs)("of $vaults.length vaults", (vector) => {
    const proof = multiproofOf(vector);
    expect(proveVaults(batch, proof.vaults)).toEqual(proof);
    expect(verifyVaultMultiproof(root, proof)).toBe(true);
    const [first, ...rest] = proof.vaults as [VaultContent, ...VaultContent[]];
    const stolen = { ...first, owner: `0x${"66".repeat(20)}` as const };
    expect(verifyVaultMultiproof(root, { ...proof, vaults: [stolen, ...rest] })).toBe(false);
    expect(verifyVaultMultiproof(root, { ...proof, vaults: [first, ...proof.vaults] })).toBe(false);
    expect(
      verifyVaultMultiproof(root, { ...proof, siblings: [...proof.siblings, derivedHash("x")] }),
    ).toBe(false);
    expect(verifyVaultMultiproof(derivedHash("x"), proof)).toBe(false);
  });

  it.each(file.refusedMultiproofs)("refused: $name", (vector) => {
    expect(verifyVaultMultiproof(root, multiproofOf(vector))).toBe(false);
  });

  it("are not made for vaults outside the batch, or out of order", () => {
    const [first, second] = present as [VaultContent, VaultContent];
    expect(() => proveVaults(batch, [second, first])).toThrow(invalid);
    expect(() => proveVaults(batch, [])).toThrow(invalid);
    expect(() => proveVaults(batch, [first, { ...second, amount: 99n }])).toThrow(invalid);
    expect(() =>
      proveVaults(batch, [first, { ...second, vaultId: second.vaultId + (1n << 20n) }]),
    ).toThrow(invalid);
  });
});
