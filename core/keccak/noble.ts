import { keccak_256 } from "@noble/hashes/sha3.js";
import type { KeccakKernel } from "./kernel.ts";

/** The plain implementation, for runtimes without WebAssembly; the one that the others are tested against. */
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
