import { keccak_256 } from "@noble/hashes/sha3.js";
import type { Address, Hash, Hex, Standard } from "../../../../core/model.ts";
import type { Settlement } from "../../../../core/ports.ts";
import { assetType } from "../../../../core/protocol/asset.ts";
import { bytesToHex } from "../../../../core/protocol/hex.ts";

/** Made-up content of the vectors: everything follows from a label by hashing, so that each run makes the same files. */

export function derivedBytes(label: string, length = 32): Uint8Array {
  return keccak_256(new TextEncoder().encode(`mintmark vector: ${label}`)).slice(0, length);
}

export function derivedHash(label: string): Hash {
  return bytesToHex(derivedBytes(label));
}

export function derivedAddress(label: string): Address {
  return bytesToHex(derivedBytes(label, 20));
}

export function text(characters: string): Hex {
  return bytesToHex(new TextEncoder().encode(characters));
}

export interface VectorAsset {
  readonly standard: Standard;
  readonly chainId: bigint;
  readonly token: Address;
  readonly quantum: bigint;
  readonly assetType: Hash;
}

/** The chain of the vectors' tokens: not one that a test chain uses, so that a registry takes them without code at their address. */
export const TOKEN_CHAIN = 424242n;

function vectorAsset(name: string, standard: Standard, quantum: bigint, chainId = TOKEN_CHAIN): VectorAsset {
  const token = derivedAddress(`token ${name}`);
  return { standard, chainId, token, quantum, assetType: assetType(standard, token, quantum) };
}

/** Register these, and every valid batch of the vectors is one that L1 takes. */
export const ASSETS = {
  coin: vectorAsset("coin", "erc20", 1_000_000_000n),
  card: vectorAsset("card", "erc721", 1n),
  item: vectorAsset("item", "erc1155", 1n),
  farCard: vectorAsset("far card", "erc721", 1n, (1n << 64n) - 1n),
} as const;

export const SETTLEMENT: Settlement = {
  chainId: 31337n,
  contract: derivedAddress("settlement"),
  engineVersion: 5,
};
