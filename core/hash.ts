import { keccak_256 } from "@noble/hashes/sha3.js";

/**
 * The one hash of the protocol, keccak-256, in the three shapes that the core asks for. Implementations share no state with their
 * callers: inputs are only read, outputs are written where the caller says.
 */
export interface Hasher {
  /** Names the implementation in benchmarks and logs. */
  readonly name: string;
  /** keccak-256 of one message; a fresh array of 32 bytes. */
  digest(message: Uint8Array): Uint8Array;
  /**
   * keccak-256 of many messages that lie back to back in one buffer.
   *
   * @param messages - message `i` is `messages[ends[i - 1] .. ends[i])`, the first one starts at 0
   * @param ends - ascending end offsets, one a message; its length is the number of messages
   * @param digests - receives 32 bytes a message; does not overlap `messages`
   */
  digestPacked(messages: Uint8Array, ends: Uint32Array, digests: Uint8Array): void;
  /**
   * One level of a tree: `keccak256(0x01 ‖ pair)` for every 64-byte pair.
   *
   * @param pairs - 64 bytes a pair
   * @param parents - receives 32 bytes a pair; does not overlap `pairs`
   */
  digestPairs(pairs: Uint8Array, parents: Uint8Array): void;
}

/** First byte of a node's preimage, apart from that of leaves, so that neither can be shown as the other. */
export const NODE_PREFIX = 0x01;

/** The plain implementation on `@noble/hashes`; the reference that every other one is tested against. */
export const nobleHasher: Hasher = {
  name: "noble",
  digest: (message) => keccak_256(message),
  digestPacked(messages, ends, digests) {
    let start = 0;
    for (const [i, end] of ends.entries()) {
      digests.set(keccak_256(messages.subarray(start, end)), i * 32);
      start = end;
    }
  },
  digestPairs(pairs, parents) {
    const preimage = new Uint8Array(65);
    preimage[0] = NODE_PREFIX;
    for (let pair = 0; pair < pairs.length / 64; pair++) {
      preimage.set(pairs.subarray(pair * 64, pair * 64 + 64), 1);
      parents.set(keccak_256(preimage), pair * 32);
    }
  },
};

/** The hasher that the core uses. */
export const hasher: Hasher = nobleHasher;

/** keccak-256 of one message; 32 bytes. */
export function keccak256(message: Uint8Array): Uint8Array {
  return hasher.digest(message);
}
