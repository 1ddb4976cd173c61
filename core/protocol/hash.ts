/**
 * The protocol's only hash, keccak-256: of a message, of many messages in one buffer, of a tree level, of a path. The
 * rest of the core imports it from here, so one module decides the implementation.
 */

import type { Hash } from "../model.ts";
import { bytesToHex, type Part, packed } from "./hex.ts";
import { keccak256 } from "./keccak/index.ts";

export { foldPath, hashMessages, hashPairs, keccak256 } from "./keccak/index.ts";

export function textHash(text: string): Uint8Array {
  return keccak256(new TextEncoder().encode(text));
}

/** The hash of {@link packed} values. */
export function hashOf(sizes: readonly number[], ...values: readonly Part[]): Hash {
  return bytesToHex(keccak256(packed(sizes, ...values)));
}
