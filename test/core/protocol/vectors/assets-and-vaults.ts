import { type BlobScheme, type Hex, MAX_AMOUNT, type Standard } from "../../../../core/model.ts";
import type { VaultContent } from "../../../../core/ports.ts";
import { mintableAssetId } from "../../../../core/protocol/asset.ts";
import { canonicalBlob, tokenIdOf } from "../../../../core/protocol/blob.ts";
import { bytesToHex } from "../../../../core/protocol/hex.ts";
import { packVaultId, unpackVaultId, vaultLeaf, writeLeafPreimage } from "../../../../core/protocol/vault.ts";
import { ASSETS, derivedAddress, text } from "./derive.ts";

/** Asset types and mintable asset ids of the assets that the other vectors use. */
export function assetVectors() {
  return {
    description:
      "Asset types and mintable asset ids (docs/protocol.md 1). Every asset that another vector file names is here.",
    vectors: Object.entries(ASSETS).map(([name, asset]) => {
      const blob = asset.standard === "erc20" ? "0x" : text("17");
      return { name, ...asset, blob, mintableAssetId: mintableAssetId(asset.standard, asset.assetType, blob) };
    }),
  };
}

const MAX_ID = ((1n << 256n) - 1n).toString();

/** Standard, scheme and what a caller sends. */
const BLOBS: readonly (readonly [Standard, BlobScheme, string])[] = [
  ["erc20", "mintmark", ""],
  ["erc20", "imx", "0x"],
  ["erc721", "mintmark", text("0")],
  ["erc721", "mintmark", text("17").slice(2)],
  ["erc721", "mintmark", text("17").replace("0x", "0X")],
  ["erc721", "mintmark", text("007")],
  ["erc721", "mintmark", text("00")],
  ["erc721", "mintmark", text("-1")],
  ["erc721", "mintmark", text("1 ")],
  ["erc721", "mintmark", text(MAX_ID)],
  ["erc721", "mintmark", text((1n << 256n).toString())],
  ["erc721", "mintmark", text("9".repeat(255))],
  ["erc721", "mintmark", text("Sword of Dawn")],
  ["erc721", "mintmark", text("{17}:{}")],
  ["erc721", "mintmark", "0x00"],
  ["erc721", "mintmark", "0xDEADbeef"],
  ["erc1155", "mintmark", text("88")],
  ["erc721", "imx", text("{17}:{}")],
  ["erc721", "imx", text("{0}:{onchain-metadata}")],
  ["erc721", "imx", text("{5}:{a}:{b}}")],
  ["erc721", "imx", text("{5}:{}}")],
  ["erc1155", "imx", text(`{${MAX_ID}}:{x}`)],
  ["erc20", "raw32", "0x"],
  ["erc721", "raw32", `0x${"00".repeat(32)}`],
  ["erc721", "raw32", `0x${"00".repeat(31)}11`],
  ["erc721", "raw32", text("1".repeat(32))],
  ["erc1155", "raw32", `0X${"fF".repeat(32)}`],
];

const REFUSED_BLOBS: readonly (readonly [Standard, BlobScheme, string])[] = [
  ["erc20", "mintmark", text("1")],
  ["erc721", "mintmark", ""],
  ["erc1155", "mintmark", "0x"],
  ["erc721", "mintmark", "0x1"],
  ["erc721", "mintmark", "17g0"],
  ["erc721", "mintmark", "0x0x31"],
  ["erc721", "mintmark", `0x${"31".repeat(256)}`],
  ["erc721", "imx", ""],
  ["erc721", "imx", text("17")],
  ["erc721", "imx", text("17:blueprint")],
  ["erc721", "imx", text("{}:{x}")],
  ["erc721", "imx", text("{017}:{x}")],
  ["erc721", "imx", text("{17}{x}")],
  ["erc721", "imx", text("{17}:{x")],
  ["erc721", "imx", text("{17}:x}")],
  ["erc721", "imx", text("{17}:{")],
  ["erc721", "imx", text("{17}:}")],
  ["erc721", "imx", text("{17}:{x} ")],
  ["erc721", "imx", text(" {17}:{x}")],
  ["erc721", "imx", text("{1x}:{x}")],
  ["erc721", "imx", text("{+1}:{x}")],
  ["erc721", "imx", text(`{${(1n << 256n).toString()}}:{x}`)],
  ["erc721", "raw32", ""],
  ["erc721", "raw32", "0x11"],
  ["erc721", "raw32", `0x${"00".repeat(31)}`],
  ["erc721", "raw32", `0x${"00".repeat(33)}`],
  ["erc1155", "raw32", `0x${"11".repeat(64)}`],
];

/** Token ids that blobs name, and blobs that are refused. */
export function blobVectors() {
  return {
    description:
      "Minting blobs (docs/protocol.md 1). `vectors`: what a caller sends, its canonical form and token id (null for ERC-20). " +
      "`refused`: blobs that are blob_invalid; some are no hex, and those never reach L1.",
    vectors: BLOBS.map(([standard, scheme, input]) => {
      const canonical = canonicalBlob(input);
      return { standard, scheme, input, canonical, tokenId: tokenIdOf(standard, scheme, canonical) };
    }),
    refused: REFUSED_BLOBS.map(([standard, scheme, input]) => ({ standard, scheme, input })),
  };
}

const { coin, card, item, farCard } = ASSETS;
const VAULTS: readonly VaultContent[] = [
  vault("validium", 0, 0, card, 1n, text("1")),
  vault("zk-rollup", 0, 0, card, 1n, text("1")),
  vault("zk-rollup", 1, 0, card, 1n, text("1")),
  vault("validium", 0, 1, card, 1n, text("1")),
  vault("validium", 0xffff_ffff, (1 << 20) - 1, coin, MAX_AMOUNT, "0x"),
  vault("zk-rollup", 7, 4711, coin, 256n, "0x"),
  vault("zk-rollup", 8, 12, item, 65_536n, text("Sword of Dawn")),
  vault("validium", 9, 3, farCard, 1n, text("{17}:{blueprint}")),
  // 58 bytes of blob fill one block of keccak to its last byte but one, 59 to the last, 60 need a second block.
  ...[57, 58, 59, 60, 194, 195, 255].map((bytes) => vault("validium", 10, bytes, item, 3n, text("x".repeat(bytes)))),
];

function vault(
  mode: "validium" | "zk-rollup",
  batchNumber: number,
  slot: number,
  asset: (typeof ASSETS)[keyof typeof ASSETS],
  amount: bigint,
  blob: Hex,
): VaultContent {
  return {
    vaultId: packVaultId({ mode, batchNumber, slot }),
    chainId: asset.chainId,
    owner: derivedAddress(`owner ${slot % 5}`),
    assetType: asset.assetType,
    amount,
    blob,
  };
}

/** Vault ids and leaves. */
export function vaultVectors() {
  return {
    description:
      "Vault ids and leaves (docs/protocol.md 2). `vectors`: a vault, its place, the preimage of its leaf, the leaf. " +
      "`refusedVaultIds`: ids with one of bits 52 to 62 set.",
    vectors: VAULTS.map((content) => {
      const preimage = new Uint8Array(512);
      const end = writeLeafPreimage(content, preimage, 0);
      return {
        ...unpackVaultId(content.vaultId),
        vault: content,
        preimage: bytesToHex(preimage.subarray(0, end)),
        leaf: bytesToHex(vaultLeaf(content)),
      };
    }),
    refusedVaultIds: [1n << 52n, 1n << 62n, (1n << 63n) | (1n << 57n), (1n << 64n) - 1n],
  };
}
