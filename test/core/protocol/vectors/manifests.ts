import { BATCH_KINDS } from "../../../../core/model.ts";
import type { AssetId } from "../../../../core/ports.ts";
import { assetsHash, consentDigest } from "../../../../core/protocol/consent.ts";
import {
  batchRoot,
  compareAssets,
  manifestLeaf,
  manifestPath,
  manifestRoot,
} from "../../../../core/protocol/manifest.ts";
import { derivedHash, SETTLEMENT } from "./derive.ts";

const COUNTS = [0, 1, 2, 3, 5, 8, 9, 255];
const CONTENT = derivedHash("content");

/** Made-up assets of two chains, in a manifest's order. */
function assetsOf(count: number): AssetId[] {
  return Array.from({ length: count }, (_, i) => ({
    chainId: i % 3 === 2 ? (1n << 64n) - 1n : SETTLEMENT.chainId,
    assetType: derivedHash(`asset ${i} of ${count}`),
  })).sort(compareAssets);
}

/** Manifests, batch roots and what issuers sign. */
export function manifestVectors() {
  const [one, two, three] = assetsOf(3) as [AssetId, AssetId, AssetId];
  const epochs = [
    [{ ...one, issuerEpoch: 0n }],
    [
      { ...one, issuerEpoch: 1n },
      { ...two, issuerEpoch: (1n << 64n) - 1n },
      { ...three, issuerEpoch: 7n },
    ],
  ];
  const consents = [
    { mode: "validium", batchNumber: 0, content: CONTENT, assetsHash: assetsHash(epochs[0] ?? []) },
    { mode: "zk-rollup", batchNumber: 2 ** 32 - 1, content: CONTENT, assetsHash: assetsHash(epochs[1] ?? []) },
  ] as const;
  return {
    description:
      "Manifests (docs/protocol.md 2): assets, the indexes of those that are left out, leaves, root, the paths of some assets that are not left out. " +
      "`batchRoots`: of one manifest and content, by kind. `assetsHashes` and `consents`: what an issuer signs (docs/protocol.md 5).",
    vectors: COUNTS.flatMap((count) => [vectorOf(count, []), ...(count > 0 ? [vectorOf(count, [count >> 1])] : [])]),
    batchRoots: BATCH_KINDS.map((kind, value) => {
      const root = manifestRoot(assetsOf(3));
      return { kind: value, manifestRoot: root, content: CONTENT, batchRoot: batchRoot(kind, root, CONTENT) };
    }),
    assetsHashes: epochs.map((assets) => ({ assets, assetsHash: assetsHash(assets) })),
    settlement: SETTLEMENT,
    consents: consents.map((consent) => ({ ...consent, digest: consentDigest(SETTLEMENT, consent) })),
  };
}

function vectorOf(count: number, leftOut: readonly number[]) {
  const assets = assetsOf(count);
  const shown = [0, Math.floor(count / 3), count - 1].filter(
    (index) => index >= 0 && index < count && !leftOut.includes(index),
  );
  return {
    assets,
    leftOut,
    root: manifestRoot(assets, leftOut),
    paths: [...new Set(shown)].map((index) => {
      const asset = assets[index] as AssetId;
      return { ...asset, leaf: manifestLeaf(asset), ...manifestPath(assets, asset, leftOut) };
    }),
  };
}
