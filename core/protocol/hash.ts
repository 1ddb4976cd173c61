import type { Hash } from "../model.ts";
import { bytesToHex, type Part, packed } from "./hex.ts";
import { createKeccak } from "./keccak/index.ts";

/** The protocol's only hash. The rest of the core imports it from here, so one module decides the implementation. */
const shared = createKeccak();

export const { hashPairs, hashMessages, foldPath } = shared;

/**
 * keccak-256 of a message of any length; a new array of 32 bytes.
 *
 * @example
 * const dataHash = bytesToHex(keccak256(data));
 */
export function keccak256(message: Uint8Array): Uint8Array<ArrayBuffer> {
  return shared.keccak256(message);
}

export function textHash(text: string): Uint8Array {
  return keccak256(new TextEncoder().encode(text));
}

/** The hash of {@link packed} values. */
export function hashOf(sizes: readonly number[], ...values: readonly Part[]): Hash {
  return bytesToHex(keccak256(packed(sizes, ...values)));
}
