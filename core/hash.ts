import { keccak } from "./keccak/index.ts";

/**
 * The one hash of the protocol, keccak-256, in the shapes that the core asks for. Inputs are only read, outputs are written where the
 * caller says; every method throws a RangeError that names an argument which does not fit the others.
 */
export interface Hasher {
  /** Names the implementation in benchmarks and logs. */
  readonly name: string;
  /** keccak-256 of one message; a fresh array of 32 bytes. */
  digest(message: Uint8Array): Uint8Array<ArrayBuffer>;
  /**
   * keccak-256 of many messages that lie back to back in one buffer.
   *
   * @param messages - message `i` is `messages[ends[i - 1] .. ends[i])`, the first one starts at 0
   * @param ends - ascending end offsets, one a message; its length is the number of messages
   * @param digests - receives 32 bytes a message
   */
  digestPacked(messages: Uint8Array, ends: Uint32Array, digests: Uint8Array): void;
  /**
   * One level of a tree: `keccak256(0x01 ‖ pair)` for every 64-byte pair.
   *
   * @param pairs - 64 bytes a pair
   * @param parents - receives 32 bytes a pair
   */
  digestPairs(pairs: Uint8Array, parents: Uint8Array): void;
  /**
   * One path of a tree, from a leaf to the root; see `foldPath` of `merkle.ts`.
   *
   * @returns a fresh array of 32 bytes
   */
  digestPath(leaf: Uint8Array, position: number, siblings: Uint8Array): Uint8Array<ArrayBuffer>;
}

/** The hasher that the core uses: the fastest that the runtime supports, chosen when something is first hashed. */
export const hasher: Hasher = {
  get name() {
    return keccak().name;
  },
  digest: (message) => keccak().keccak256(message),
  digestPacked: (messages, ends, digests) => keccak().hashMessages(messages, ends, digests),
  digestPairs: (pairs, parents) => keccak().hashPairs(pairs, parents, pairs.length / 64),
  digestPath: (leaf, position, siblings) => keccak().foldPath(leaf, position, siblings),
};

/** keccak-256 of one message; 32 bytes. */
export function keccak256(message: Uint8Array): Uint8Array<ArrayBuffer> {
  return hasher.digest(message);
}
