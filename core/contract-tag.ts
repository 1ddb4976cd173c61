import type { Address } from "./model.ts";

/**
 * The first four hex digits of a settlement contract's address. Every API key's id starts with its contract's tag, so that whoever
 * stands before several engines, one a contract, can tell from the key alone whose it is.
 */
export function contractTag(contract: Address): string {
  return contract.slice(2, 6).toLowerCase();
}
