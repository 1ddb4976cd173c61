/** Names of the implementations, the fastest first. */
export const KECCAK_NAMES = ["simd", "scalar", "noble"] as const;
export type KeccakName = (typeof KECCAK_NAMES)[number];

/**
 * What an implementation provides. Arguments have been checked: they fit one another, and where an output overlaps its
 * input, the input is a copy or the overlap harmless.
 */
export interface KeccakKernel {
  readonly name: KeccakName;
  keccak256(message: Uint8Array): Uint8Array<ArrayBuffer>;
  /** `count` is at least 1. Digests may overwrite the pairs, if `output` does not begin after `input`. */
  hashPairs(input: Uint8Array, output: Uint8Array, count: number, prefix: number): void;
  /** There is at least one message. */
  hashMessages(input: Uint8Array, ends: Uint32Array, output: Uint8Array): void;
  /** There is at least one sibling. */
  foldPath(leaf: Uint8Array, position: number, siblings: Uint8Array, prefix: number): Uint8Array<ArrayBuffer>;
}
