import { MintmarkError } from "../errors.ts";
import type { Address, Hash, Hex, Standard } from "../model.ts";
import { requireBigint } from "./bounds.ts";
import { hashOf, hexToBytes, keccak256, wordOf } from "./hex.ts";

/**
 * First four bytes of keccak-256 of StarkEx's selector texts, such as
 * `MintableERC20Token(address)`.
 */
const SELECTORS: Readonly<Record<Standard, Hex>> = {
  erc20: "0x68646e2d",
  erc721: "0xb8b86672",
  erc1155: "0xbae32628",
};

/** A quantum is below 2^128, so `amount * quantum` fits a word. */
export const MAX_QUANTUM = (1n << 128n) - 1n;

const MINTABLE_PREFIX = new TextEncoder().encode("MINTABLE:");
const MASK_250 = (1n << 250n) - 1n;
const MASK_240 = (1n << 240n) - 1n;

/** Flag bits above the 240-bit hash, by the standard of the asset. */
const ASSET_ID_FLAGS: Readonly<Record<Standard, bigint>> = {
  erc20: (1n << 250n) | (1n << 249n) | (1n << 248n),
  erc721: 1n << 250n,
  erc1155: (1n << 250n) | (1n << 249n),
};

/**
 * The asset type of a token contract, as in StarkEx:
 * `keccak256(selector(4) ‖ u256(token) ‖ u256(quantum)) & (2^250 - 1)`.
 *
 * @param quantum - base units of one quantized unit: 1 to 2^128 - 1; 1 for ERC-721 and ERC-1155
 * @throws MintmarkError `validation_failed` for a bad address or quantum
 *
 * @example
 * const type = assetType("erc20", token, 1_000n); // one unit is 1,000 base units
 */
export function assetType(standard: Standard, token: Address, quantum: bigint): Hash {
  requireBigint("quantum", quantum, 1n, MAX_QUANTUM);
  if (standard !== "erc20" && quantum !== 1n) {
    throw new MintmarkError(
      "validation_failed",
      `the quantum of an ${standard} asset must be 1, got ${quantum}`,
    );
  }
  const hash = hashOf([4, 12, 20, 32], SELECTORS[standard], 0, token, quantum);
  return wordOf(BigInt(hash) & MASK_250);
}

/**
 * StarkEx's id of a mintable asset and blob: `keccak256("MINTABLE:" ‖ u256(assetType) ‖
 * keccak256(blob))`, cut to 240 bits, with the flags of the standard above.
 *
 * @param blob - the identifier text's bytes as hex
 *
 * @example
 * const id = mintableAssetId("erc721", assetType("erc721", token, 1n), "0x3137"); // of the blob
 * "17"
 */
export function mintableAssetId(standard: Standard, type: Hash, blob: Hex): Hash {
  const hash = hashOf(
    [MINTABLE_PREFIX.length, 32, 32],
    MINTABLE_PREFIX,
    type,
    keccak256(hexToBytes(blob)),
  );
  return wordOf((BigInt(hash) & MASK_240) | ASSET_ID_FLAGS[standard]);
}
