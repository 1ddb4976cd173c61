import { encodePacked, keccak256, numberToHex } from "viem";
import type { Hash } from "../../../core/model.ts";
import type { VaultContent } from "../../../core/ports.ts";

/** Leaves and commitments by viem's `encodePacked`; shares nothing with the core's byte writing. */

export function naiveLeaf({ vaultId, chainId, owner, assetType, amount, blob }: VaultContent): Hash {
  return keccak256(
    encodePacked(
      ["uint8", "uint64", "uint64", "address", "bytes32", "uint64", "bytes"],
      [0, vaultId, chainId, owner, assetType, amount, blob],
    ),
  );
}

/** The history after a commit, from the one before it. */
export function naiveHistory(before: Hash, mode: "validium" | "zk-rollup", leaf: Hash): Hash {
  return keccak256(
    encodePacked(["uint8", "bytes32", "uint8", "bytes32"], [9, before, mode === "validium" ? 0 : 1, leaf]),
  );
}

export function naiveStateLeaf(batchNumber: bigint, vaultCount: number, dataHash: Hash, batchRoot: Hash): Hash {
  return keccak256(
    encodePacked(
      ["uint8", "uint64", "uint32", "bytes32", "bytes32"],
      [2, batchNumber, vaultCount, dataHash, batchRoot],
    ),
  );
}

/** `{id}` as a canonical blob. */
export function decimalBlob(id: bigint | number): `0x${string}` {
  return `0x${[...String(id)].map((digit) => numberToHex(digit.charCodeAt(0)).slice(2)).join("")}`;
}
