import { bytesToHex, concat, encodePacked, hexToBytes, keccak256, numberToHex } from "viem";
import type { Hash } from "../../../core/model.ts";
import type { VaultContent } from "../../../core/ports.ts";
import { naiveRoot } from "./naive-tree.ts";
import { naiveLeaf as leafOfWords, naiveWords } from "./naive-words.ts";

/** Commitments by viem's `encodePacked`; shares nothing with the core's byte writing. */

/** The leaf of a vault whose asset has this place in its batch's manifest. */
export function naiveLeaf(vault: VaultContent, assetIndex: number): Hash {
  return leafOfWords(vault.vaultId, naiveWords(vault, assetIndex));
}

/** The history after a commit, from the one before it. */
export function naiveHistory(before: Hash, mode: "validium" | "zk-rollup", leaf: Hash): Hash {
  return keccak256(
    encodePacked(
      ["uint8", "bytes32", "uint8", "bytes32"],
      [9, before, mode === "validium" ? 0 : 1, leaf],
    ),
  );
}

/**
 * The root of a sealed batch: over the manifest of its vaults' assets, and the root of its vaults.
 */
export function naiveBatchRoot(
  mode: "validium" | "zk-rollup",
  vaults: readonly (Pick<VaultContent, "chainId" | "assetType"> | null)[],
  content: Hash,
): Hash {
  const packed = vaults.flatMap((vault) =>
    vault === null
      ? []
      : [encodePacked(["uint64", "uint256"], [vault.chainId, BigInt(vault.assetType)])],
  );
  const leaves = [...new Set(packed)]
    .sort()
    .map((asset) => hexToBytes(keccak256(concat(["0x07", asset]))));
  const root = bytesToHex(naiveRoot(leaves));
  return keccak256(
    encodePacked(
      ["uint8", "uint8", "bytes32", "bytes32"],
      [6, mode === "validium" ? 0 : 1, root, content],
    ),
  );
}

export function naiveStateLeaf(
  batchNumber: bigint,
  vaultCount: number,
  dataHash: Hash,
  batchRoot: Hash,
): Hash {
  return keccak256(
    encodePacked(
      ["uint8", "uint64", "uint32", "bytes32", "bytes32"],
      [2, batchNumber, vaultCount, dataHash, batchRoot],
    ),
  );
}

/** `{id}` as a canonical minting blob. */
export function decimalMintingBlob(id: bigint | number): `0x${string}` {
  return `0x${[...String(id)].map((digit) => numberToHex(digit.charCodeAt(0)).slice(2)).join("")}`;
}
