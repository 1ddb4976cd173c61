import { invalid } from "../errors.ts";
import type { Address, Hash, Hex, Standard } from "../model.ts";
import { requireBigint } from "./bounds.ts";
import { hashOf, wordOf } from "./hex.ts";

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

const MASK_250 = (1n << 250n) - 1n;

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
    throw invalid(`the quantum of an ${standard} asset must be 1, got ${quantum}`);
  }
  const hash = hashOf([4, 12, 20, 32], SELECTORS[standard], 0, token, quantum);
  return wordOf(BigInt(hash) & MASK_250);
}
