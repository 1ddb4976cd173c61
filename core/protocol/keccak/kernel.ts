import { keccak_256 } from "@noble/hashes/sha3.js";

/** The implementations, fastest first. */
export const KECCAK_NAMES = ["wasm", "noble"] as const;
export type KeccakName = (typeof KECCAK_NAMES)[number];

/** One implementation. Its caller has checked that the arguments fit, and that output over input is harmless. */
export interface KeccakKernel {
  readonly name: KeccakName;
  keccak256(message: Uint8Array): Uint8Array<ArrayBuffer>;
  /** `count` is at least 1. Digests may overwrite the pairs if `output` does not begin after `input`. */
  hashPairs(input: Uint8Array, output: Uint8Array, count: number, prefix: number): void;
  /** There is at least one message. */
  hashMessages(input: Uint8Array, ends: Uint32Array, output: Uint8Array): void;
  /** There is at least one sibling. */
  foldPath(leaf: Uint8Array, position: number, siblings: Uint8Array, prefix: number): Uint8Array<ArrayBuffer>;
}

/** The plain implementation, for runtimes without WebAssembly or its vectors, and the reference in the other's tests. */
export function nobleKernel(): KeccakKernel {
  return {
    name: "noble",
    keccak256: (message) => Uint8Array.from(keccak_256(message)),

    hashPairs(input, output, count, prefix) {
      for (let i = 0; i < count; i++) {
        output.set(hashPair(input.subarray(64 * i, 64 * i + 64), prefix), 32 * i);
      }
    },

    hashMessages(input, ends, output) {
      let start = 0;
      for (const [i, end] of ends.entries()) {
        output.set(keccak_256(input.subarray(start, end)), 32 * i);
        start = end;
      }
    },

    foldPath(leaf, position, siblings, prefix) {
      const pair = new Uint8Array(64);
      let root = Uint8Array.from(leaf);
      for (let level = 0; level < siblings.length / 32; level++) {
        const place = ((position >>> level) & 1) * 32;
        pair.set(root, place);
        pair.set(siblings.subarray(32 * level, 32 * level + 32), 32 - place);
        root = hashPair(pair, prefix);
      }
      return root;
    },
  };
}

function hashPair(pair: Uint8Array, prefix: number): Uint8Array<ArrayBuffer> {
  const preimage = new Uint8Array(65);
  preimage[0] = prefix;
  preimage.set(pair, 1);
  return Uint8Array.from(keccak_256(preimage));
}
