import { DasContextJs } from "@crate-crypto/node-eth-kzg";
import { describe, expect, it } from "vitest";
import type { Hash } from "../../../core/model.ts";
import type { VaultEntry } from "../../../core/protocol/batch-data.ts";
import { placeVaults } from "../../../core/protocol/batch-data.ts";
import * as blobBatch from "../../../core/protocol/blob-batch.ts";
import { bytesToHex, hexToBytes } from "../../../core/protocol/hex.ts";
import { evaluationPoint } from "../../../core/protocol/kzg.ts";
import { batchRoot, manifestRoot } from "../../../core/protocol/manifest.ts";
import { type OpenedVault, openedProof } from "../../../core/protocol/opening.ts";
import { verifyVaultProof } from "../../../core/protocol/proof.ts";
import { versionedHash } from "../../../core/protocol/versioned-hash.ts";
import { decimalMintingBlob } from "../naive/naive-vault.ts";
import { textMintingBlob } from "./arbitrary.ts";

const kzg = DasContextJs.create({ usePrecomp: false });
const VAULT: VaultEntry = {
  chainId: 1n,
  owner: `0x${"11".repeat(20)}`,
  assetType: `0x${"22".repeat(32)}`,
  amount: 1n,
  mintingBlob: decimalMintingBlob(7),
};
const COIN = { ...VAULT, assetType: `0x${"33".repeat(32)}` as Hash, mintingBlob: "0x" as const };
const SLOTS = [
  VAULT,
  { ...VAULT, mintingBlob: decimalMintingBlob(2n ** 255n) },
  { ...VAULT, mintingBlob: textMintingBlob("x".repeat(61)) },
  null,
  { ...COIN, amount: 5n },
  { ...COIN, amount: 6n },
];

/** A batch with its commitments, and what proves its slots. */
function proving(slots: readonly (VaultEntry | null)[], change: Partial<blobBatch.BlobBatch> = {}) {
  const batch = { ...blobBatch.encodeBlobBatch(slots), ...change };
  const commitments = blobBatch
    .blobsIn(batch)
    .map((blob) => bytesToHex(kzg.blobToKzgCommitment(blob)));
  const versionedHashes = commitments.map(versionedHash);
  const content = blobBatch.blobContent(
    batch.vaultCount,
    blobBatch.manifestHash(batch.assets),
    versionedHashes,
  );
  const vaults = placeVaults(slots, "zk-rollup", 3);
  const open = (place: number, point = evaluationPoint(place % blobBatch.BLOB_ELEMENTS)) => {
    const blob = Math.floor(place / blobBatch.BLOB_ELEMENTS);
    const z = hexToBytes(`0x${point.toString(16).padStart(64, "0")}`);
    const [proof] = kzg.computeKzgProof(blobBatch.blobsIn(batch)[blob] as Uint8Array, z);
    return { commitment: commitments[blob] as Hash, proof: bytesToHex(proof as Uint8Array) };
  };
  const prove = (slot: number, places?: readonly number[]): OpenedVault => {
    const vault = vaults[slot];
    if (!vault) throw new Error(`slot ${slot} holds no vault`);
    const opened = (places ?? blobBatch.elementPlaces(batch, slot)).map((place) => open(place));
    return openedProof({ ...batch, versionedHashes }, vault, opened);
  };
  return {
    batch,
    prove,
    open,
    root: batchRoot("blobs", manifestRoot(batch.assets), content),
    versionedHashes,
    vaults,
  };
}

describe("the proof of a vault in blobs", () => {
  const { prove, root, open, batch, versionedHashes, vaults } = proving(SLOTS);

  it.each([0, 1, 2, 4])("holds for slot %i, against its own batch's root alone", (slot) => {
    const proof = prove(slot);
    expect(verifyVaultProof(root, proof)).toBe(true);
    expect(verifyVaultProof(`0x${"00".repeat(32)}`, proof)).toBe(false);
  });

  it.each<[string, (proof: OpenedVault) => OpenedVault]>([
    [
      "another slot",
      (proof) => ({ ...proof, vault: { ...proof.vault, vaultId: proof.vault.vaultId + 1n } }),
    ],
    ["another amount", (proof) => ({ ...proof, vault: { ...proof.vault, amount: 6n } })],
    [
      "another owner",
      (proof) => ({ ...proof, vault: { ...proof.vault, owner: `0x${"44".repeat(20)}` } }),
    ],
    ["another asset of the manifest", (proof) => ({ ...proof, assetPath: prove(0).assetPath })],
    ["another count", (proof) => ({ ...proof, vaultCount: 7 })],
    [
      "the other mode",
      (proof) => ({
        ...proof,
        vault: { ...proof.vault, vaultId: proof.vault.vaultId - (1n << 63n) },
      }),
    ],
    ["another slot's opening", () => prove(4, [5])],
    ["a word less", (proof) => ({ ...proof, siblings: proof.siblings.slice(0, -1) })],
    [
      "a word more",
      (proof) => ({ ...proof, siblings: [...proof.siblings, `0x${"00".repeat(32)}`] }),
    ],
    ["no word", (proof) => ({ ...proof, siblings: [] })],
  ])("fails for %s", (_, change) => {
    expect(verifyVaultProof(root, change(prove(4)))).toBe(false);
  });

  it("fails for points in natural order, and outside of the domain", () => {
    const vault = vaults[4];
    if (!vault) throw new Error("slot 4 holds a vault");
    // Element 2 is at the point whose power 4 has in natural order is 2048's.
    for (const opening of [open(4, evaluationPoint(32)), open(4, 5n)]) {
      expect(
        verifyVaultProof(root, openedProof({ ...batch, versionedHashes }, vault, [opening])),
      ).toBe(false);
    }
  });

  it("fails for a continuation among the slots", () => {
    const counted = proving(SLOTS, { vaultCount: SLOTS.length + 1 });
    expect(verifyVaultProof(counted.root, counted.prove(1))).toBe(false);
    expect(verifyVaultProof(counted.root, counted.prove(0))).toBe(true);
  });

  it("is not given for an asset that L1 has left out", () => {
    const vault = vaults[0];
    if (!vault) throw new Error("slot 0 holds a vault");
    expect(() =>
      openedProof({ ...batch, versionedHashes, leftOut: [0] }, vault, [open(0)]),
    ).toThrow("leaves this asset out");
  });
});
