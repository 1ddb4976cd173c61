import { keccak_256 } from "@noble/hashes/sha3.js";

/** The implementations, fastest first. */
export type KeccakName = "wasm" | "noble";

/** First byte of a node's preimage. It differs from a leaf's, so neither can pass for the other. */
export const NODE_PREFIX = 0x01;

/**
 * keccak-256 (with Ethereum's original padding) for the shapes of Merkle trees. Everything is
 * synchronous. Inputs are only read, and no output overlaps them. A kernel trusts its arguments;
 * `createKeccak` returns one that checks them.
 */
export interface Keccak {
  readonly name: KeccakName;
  /** Hashes a message of any length into a new array of 32 bytes. */
  keccak256(message: Uint8Array): Uint8Array<ArrayBuffer>;
  /**
   * One level of a tree: `output[i] = keccak256(0x01 ‖ input[i])`, i < count.
   *
   * @param input - at least `count` pairs of 64 bytes
   * @param output - receives 32 bytes a pair
   */
  hashPairs(input: Uint8Array, output: Uint8Array, count: number): void;
  /**
   * Hashes many messages that lie in one buffer, one after the other.
   *
   * @param input - message i is `input[ends[i - 1] .. ends[i])`; the first one starts at 0
   * @param ends - end offsets, ascending or equal
   * @param output - receives 32 bytes a message
   */
  hashMessages(input: Uint8Array, ends: Uint32Array, output: Uint8Array): void;
  /**
   * The root from a leaf, its position and its siblings, with nodes as in {@link Keccak.hashPairs}.
   * Goes from the leaf upwards, bit 0 of the position first: at a 0 bit the accumulator is the left
   * child, at a 1 bit the right one.
   *
   * @param leaf - 32 bytes
   * @param position - 0 to 2^32 - 1
   * @param siblings - 32 bytes a level, packed, at most 32
   * @returns a new array of 32 bytes; the leaf itself when there are no siblings
   */
  foldPath(leaf: Uint8Array, position: number, siblings: Uint8Array): Uint8Array<ArrayBuffer>;
}

/**
 * The plain implementation, for runtimes without WebAssembly or its vectors, and the reference in
 * the other's tests.
 */
export function nobleKernel(): Keccak {
  return {
    name: "noble",
    keccak256: (message) => Uint8Array.from(keccak_256(message)),

    hashPairs(input, output, count) {
      for (let i = 0; i < count; i++)
        output.set(hashPair(input.subarray(64 * i, 64 * i + 64)), 32 * i);
    },

    hashMessages(input, ends, output) {
      let start = 0;
      for (const [i, end] of ends.entries()) {
        output.set(keccak_256(input.subarray(start, end)), 32 * i);
        start = end;
      }
    },

    foldPath(leaf, position, siblings) {
      const pair = new Uint8Array(64);
      let root = Uint8Array.from(leaf);
      for (let level = 0; level < siblings.length / 32; level++) {
        const place = ((position >>> level) & 1) * 32;
        pair.set(root, place);
        pair.set(siblings.subarray(32 * level, 32 * level + 32), 32 - place);
        root = hashPair(pair);
      }
      return root;
    },
  };
}

function hashPair(pair: Uint8Array): Uint8Array<ArrayBuffer> {
  const preimage = new Uint8Array(65);
  preimage[0] = NODE_PREFIX;
  preimage.set(pair, 1);
  return Uint8Array.from(keccak_256(preimage));
}
