import { encodePacked, keccak256 } from "viem";
import { describe, expect, it } from "vitest";
import { BATCH_KINDS, type BatchKind, type Hash } from "../../../core/model.ts";
import type { AssetId } from "../../../core/ports.ts";
import { manifestHash } from "../../../core/protocol/blob-batch.ts";
import { assetsHash, consentDigest } from "../../../core/protocol/consent.ts";
import {
  batchRoot,
  manifestLeaf,
  manifestPath,
  manifestRoot,
  manifestRootOf,
} from "../../../core/protocol/manifest.ts";
import { derivedHash, SETTLEMENT, vectors } from "./vectors.ts";

const invalid = expect.objectContaining({ code: "validation_failed" });
const asset = (n: number): AssetId => ({
  chainId: 1n,
  assetType: `0x${n.toString(16).padStart(64, "0")}`,
});
const assets = (count: number) => Array.from({ length: count }, (_, i) => asset(i + 1));

const idOf = ({ chainId, assetType }: { chainId: string; assetType: Hash }) => ({
  chainId: BigInt(chainId),
  assetType,
});

describe("manifests", () => {
  const file = vectors("manifests");

  it.each(file.vectors)(
    "of $assets.length assets without $leftOut are the vectors'",
    ({ assets, leftOut, root, paths }) => {
      const [listed, left] = [assets.map(idOf), leftOut.map(Number)];
      expect(manifestRoot(listed, left)).toBe(root);
      for (const { leaf, index, siblings, ...asset } of paths) {
        expect(manifestLeaf(idOf(asset))).toBe(leaf);
        expect(manifestPath(listed, idOf(asset), left)).toEqual({ index: Number(index), siblings });
      }
    },
  );

  it.each(file.batchRoots)(
    "of kind $kind have the vectors' batch root",
    ({ kind, content, ...roots }) => {
      expect(batchRoot(BATCH_KINDS[Number(kind)] as BatchKind, roots.manifestRoot, content)).toBe(
        roots.batchRoot,
      );
    },
  );

  it("hash an asset's leaf and the batch root as the protocol page has it", () => {
    const { chainId, assetType } = asset(7);
    const leaf = keccak256(
      encodePacked(["uint8", "uint64", "uint256"], [7, chainId, BigInt(assetType)]),
    );
    expect(manifestLeaf(asset(7))).toBe(leaf);
    expect(manifestRoot([asset(7)])).toBe(leaf);
    const content = derivedHash("content");
    const root = keccak256(
      encodePacked(["uint8", "uint8", "bytes32", "bytes32"], [6, 1, leaf, content]),
    );
    expect(batchRoot("calldata", leaf, content)).toBe(root);
  });

  it("prove each asset that they do not leave out", () => {
    for (const count of [1, 2, 3, 7, 255]) {
      const left = count > 2 ? [1] : [];
      const root = manifestRoot(assets(count), left);
      for (const [index, each] of assets(count).entries()) {
        if (left.includes(index)) {
          expect(() => manifestPath(assets(count), each, left)).toThrow(invalid);
          continue;
        }
        const path = manifestPath(assets(count), each, left);
        expect(path.siblings.length).toBe(Math.ceil(Math.log2(count)));
        expect(manifestRootOf(each, path)).toBe(root);
        expect(manifestRootOf(asset(999), path)).not.toBe(root);
      }
    }
  });

  it("have another root for each list, and for each asset that is left out", () => {
    const roots = [assets(1), assets(2), assets(3), assets(4)].map((list) => manifestRoot(list));
    roots.push(
      manifestRoot(assets(3), [0]),
      manifestRoot(assets(3), [2]),
      manifestRoot(assets(3), [0, 1, 2]),
    );
    expect(new Set(roots).size).toBe(roots.length);
    expect(manifestRoot([])).toBe(`0x${"00".repeat(32)}`);
  });

  it("ascend and name at most 255 assets", () => {
    expect(() => manifestRoot([asset(2), asset(1)])).toThrow(invalid);
    expect(() => manifestRoot([asset(1), asset(1)])).toThrow(invalid);
    expect(() => manifestRoot([{ ...asset(1), chainId: 2n }, asset(2)])).toThrow(invalid);
    expect(() => manifestRoot(assets(256))).toThrow(invalid);
    expect(() => manifestRoot(assets(2), [2])).toThrow(invalid);
    expect(() => manifestPath(assets(2), asset(3))).toThrow(invalid);
    expect(() => manifestRootOf(asset(1), { index: 1, siblings: [] })).toThrow(invalid);
    expect(() =>
      manifestRootOf(asset(1), { index: 0, siblings: Array(9).fill(derivedHash("s")) }),
    ).toThrow(invalid);
  });
});

describe("issuers' consents", () => {
  const content = derivedHash("content");
  const named = assets(2).map((each, i) => ({ ...each, issuerEpoch: BigInt(i) }));

  it("have the vectors' digests", () => {
    const { assetsHashes, consents } = vectors("manifests");
    for (const { assets, assetsHash: hash } of assetsHashes)
      expect(
        assetsHash(
          assets.map((each) => ({ ...idOf(each), issuerEpoch: BigInt(each.issuerEpoch) })),
        ),
      ).toBe(hash);
    for (const { digest, batchNumber, vaultCount, ...consent } of consents) {
      const numbers = { batchNumber: Number(batchNumber), vaultCount: Number(vaultCount) };
      expect(consentDigest(SETTLEMENT, { ...consent, ...numbers })).toBe(digest);
    }
  });

  it("hash the assets with fixed widths", () => {
    const [a, b] = named as [(typeof named)[0], (typeof named)[0]];
    const packed = encodePacked(
      ["uint64", "uint256", "uint64", "uint64", "uint256", "uint64"],
      [
        a.chainId,
        BigInt(a.assetType),
        a.issuerEpoch,
        b.chainId,
        BigInt(b.assetType),
        b.issuerEpoch,
      ],
    );
    expect(assetsHash(named)).toBe(keccak256(packed));
    expect(() => assetsHash([])).toThrow(invalid);
    expect(() => assetsHash([...named].reverse())).toThrow(invalid);
    expect(() => assetsHash([{ ...a, issuerEpoch: 1n << 64n }])).toThrow(invalid);
  });

  it("differ by mode, number, slots, content, manifest, assets, chain and contract", () => {
    const consent = {
      mode: "validium",
      batchNumber: 3,
      vaultCount: 8,
      content,
      manifest: manifestHash(named),
      assetsHash: assetsHash(named),
    } as const;
    const digests = [
      consentDigest(SETTLEMENT, consent),
      consentDigest(SETTLEMENT, { ...consent, mode: "zk-rollup" }),
      consentDigest(SETTLEMENT, { ...consent, batchNumber: 4 }),
      consentDigest(SETTLEMENT, { ...consent, vaultCount: 9 }),
      consentDigest(SETTLEMENT, { ...consent, content: derivedHash("other") }),
      consentDigest(SETTLEMENT, { ...consent, manifest: manifestHash(named.slice(1)) }),
      consentDigest(SETTLEMENT, { ...consent, assetsHash: assetsHash(named.slice(1)) }),
      consentDigest({ ...SETTLEMENT, chainId: 1n }, consent),
      consentDigest({ ...SETTLEMENT, contract: `0x${"22".repeat(20)}` }, consent),
    ];
    expect(new Set(digests).size).toBe(digests.length);
    expect(() => consentDigest(SETTLEMENT, { ...consent, batchNumber: -1 })).toThrow(invalid);
    expect(() => consentDigest(SETTLEMENT, { ...consent, vaultCount: 0 })).toThrow(invalid);
  });
});
