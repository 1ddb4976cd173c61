import { toHex } from "viem";
import type { AssetReader } from "../../core/archive/vault-index.ts";
import type { Hash, Hex, Kzg, Mode, SealedBatch, Standard } from "../../core/index.ts";
import type { L1Registration } from "../../core/ports.ts";
import {
  batchDataOf,
  batchLeaves,
  type VaultEntry,
  type WordBatch,
  wordBatch,
} from "../../core/protocol/batch-data.ts";
import { BatchTree } from "../../core/protocol/batch-tree.ts";
import {
  blobBatchData,
  blobContent,
  blobsIn,
  encodeBlobBatch,
  manifestHash,
} from "../../core/protocol/blob-batch.ts";
import { bytesToHex, keccak256, packed } from "../../core/protocol/hex.ts";
import { batchRoot, kindOf, manifestRoot } from "../../core/protocol/manifest.ts";
import { versionedHash } from "../../core/protocol/versioned-hash.ts";
import { Words } from "../../core/protocol/words.ts";

export const TOKENS: Readonly<Record<Standard, Hex>> = {
  erc20: `0x${"20".repeat(20)}`,
  erc721: `0x${"72".repeat(20)}`,
  erc1155: `0x${"55".repeat(20)}`,
};
/** Asset types of this test's registry; the member only asks L1 for them. */
export const TYPES: Readonly<Record<Standard, Hash>> = {
  erc20: `0x${"20".repeat(32)}`,
  erc721: `0x${"02".repeat(32)}`,
  erc1155: `0x${"15".repeat(32)}`,
};
/** The ERC-20 once more, in units of ten. */
export const TENS: Hash = `0x${"1e".repeat(32)}`;
/** Registered in a block that is not final. */
export const NEW_TYPE: Hash = `0x${"ee".repeat(32)}`;
export const FINAL = 5n;
export const OWNER: Hex = `0x${"0a".repeat(20)}`;

/** L1's registry as far as members and issuers need it. */
export const registry: AssetReader = {
  settlement: { chainId: 31_337n, contract: `0x${"5e".repeat(20)}`, engineVersion: 5 },
  blockNumber: async () => FINAL + 1n,
  finalizedBlockNumber: async () => FINAL,
  registrations: async (assets, at = FINAL + 1n) =>
    assets.map(({ assetType }): L1Registration | null => {
      if (assetType === NEW_TYPE && at <= FINAL) return null;
      const standard =
        (["erc20", "erc721", "erc1155"] as const).find((name) => TYPES[name] === assetType) ??
        "erc20";
      const known = {
        standard,
        token: TOKENS[standard],
        mintingBlobScheme: "mintmark",
        since: 0n,
      } as const;
      if (assetType === NEW_TYPE || assetType === TYPES[standard]) return { ...known, quantum: 1n };
      return assetType === TENS ? { ...known, quantum: 10n } : null;
    }),
  supplyCap: async () => 1_000n,
};

export function entry(standard: Standard, text = "", amount = 1n): VaultEntry {
  return {
    chainId: 31_337n,
    owner: OWNER,
    assetType: TYPES[standard],
    amount,
    mintingBlob: toHex(text),
  };
}

/** Records that are no vault's words, which L1 takes all the same: by name, a tag and a payload. */
export const POISONS: readonly (readonly [name: string, tag: number, payload: bigint])[] = [
  ["a tag of no form", 0x70, 1n],
  ["fifteen continuations", 0x6f, 1n],
  ["ten continuations without a form", 0x0a, 0n],
  ["an amount above 2^63 - 1", 0x10, 1n << 63n],
  ["a void slot with a payload", 0x00, 1n],
];

/** The words of slots, with such a record in front. */
export function poisonedWords(
  entries: readonly (VaultEntry | null)[],
  tag: number,
  payload: bigint,
  assetIndex = 0,
): WordBatch {
  const { assets, words: honest } = wordBatch(entries);
  const words = new Words(honest.count + 1);
  const head = packed([1, 1, 20, 10], tag, assetIndex, OWNER, payload);
  words.addSpelt(head, new Uint8Array(31 * (tag & 15)).fill(0x31));
  for (let slot = 0; slot < honest.count; slot++)
    words.addSpelt(honest.headAt(slot), honest.restAt(slot));
  return { assets, words };
}

/** A sealed batch of these slots, as an honest engine makes it. */
export function sealed(
  batchNumber: number,
  entries: readonly (VaultEntry | null)[],
  mode: Mode = "validium",
): SealedBatch {
  return sealedWords(batchNumber, wordBatch(entries), mode);
}

/** A sealed batch of these words, whatever they are. */
export function sealedWords(
  batchNumber: number,
  batch: WordBatch,
  mode: Mode = "validium",
): SealedBatch {
  const { assets } = batch;
  const data = batchDataOf(batch);
  const content = bytesToHex(new BatchTree(batchLeaves(batch, mode, batchNumber)).root);
  return {
    mode,
    batchNumber,
    vaultCount: batch.words.count,
    assets,
    content,
    batchRoot: batchRoot(kindOf(mode), manifestRoot(assets), content),
    dataHash: bytesToHex(keccak256(data)),
    data,
  };
}

/** Like {@link sealed}, of a rollup batch in blobs. */
export async function sealedBlobs(
  batchNumber: number,
  entries: readonly (VaultEntry | null)[],
  kzg: Pick<Kzg, "commitment">,
): Promise<SealedBatch> {
  const batch = encodeBlobBatch(entries);
  const { assets, vaultCount } = batch;
  const hashes = await Promise.all(
    blobsIn(batch).map(async (blob) => versionedHash(await kzg.commitment(blob))),
  );
  const content = blobContent(vaultCount, manifestHash(assets), hashes);
  const place = { mode: "zk-rollup", batchNumber, vaultCount, assets } as const;
  const root = batchRoot("blobs", manifestRoot(assets), content);
  return { ...place, content, dataHash: content, batchRoot: root, data: blobBatchData(batch) };
}

/** The other minting blob of a text's ERC-1155 id. */
export function decimalOf(text: string): string {
  return BigInt(bytesToHex(keccak256(new TextEncoder().encode(text)))).toString();
}
