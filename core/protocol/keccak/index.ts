import { type KeccakKernel, type KeccakName, nobleKernel } from "./kernel.ts";
import { wasmKernel } from "./wasm.ts";

/**
 * keccak-256 (with Ethereum's original padding) for the shapes of Merkle trees, by the fastest implementation that the
 * runtime supports: WebAssembly with two states in vectors, or `@noble/hashes`. The files of this folder generate the
 * WebAssembly at first use. Everything is synchronous, including its compilation. Inputs are only read; the caller gives
 * the output buffers.
 */

export { KECCAK_NAMES, type KeccakName } from "./kernel.ts";

/** First byte of a node's preimage. It differs from a leaf's, so neither can pass for the other. */
const NODE_PREFIX = 0x01;
const MAX_PATH = 32;

/** One implementation, with checks of its arguments. Every method throws a RangeError that names the bad argument. */
export class Keccak {
  readonly #kernel: KeccakKernel;

  constructor(kernel: KeccakKernel) {
    this.#kernel = kernel;
  }

  get name(): KeccakName {
    return this.#kernel.name;
  }

  /** keccak-256 of a message of any length; a new array of 32 bytes. */
  keccak256(message: Uint8Array): Uint8Array<ArrayBuffer> {
    return this.#kernel.keccak256(message);
  }

  /**
   * One level of a tree: `output[i] = keccak256(prefix ‖ input[i])`, i < count.
   *
   * @param input - at least `count` pairs of 64 bytes
   * @param output - receives 32 bytes a pair; may overlap `input`
   * @param prefix - one byte, default 0x01
   */
  hashPairs(input: Uint8Array, output: Uint8Array, count = Math.floor(input.length / 64), prefix = NODE_PREFIX): void {
    requireInteger("count", count, Math.min(Math.floor(input.length / 64), Math.floor(output.length / 32)));
    requireInteger("prefix", prefix, 0xff);
    if (count === 0) return;
    // A digest starts no later than its pair, so only an output that begins later can overwrite an unread pair.
    const source = overlap(input, output) && output.byteOffset > input.byteOffset ? input.slice(0, 64 * count) : input;
    this.#kernel.hashPairs(source, output, count, prefix);
  }

  /**
   * keccak-256 of many messages in one buffer, one after the other.
   *
   * @param input - message i is `input[ends[i - 1] .. ends[i])`; the first one starts at 0
   * @param ends - end offsets, ascending or equal
   * @param output - receives 32 bytes a message; may overlap `input`
   */
  hashMessages(input: Uint8Array, ends: Uint32Array, output: Uint8Array): void {
    requireInteger("number of messages", ends.length, Math.floor(output.length / 32));
    let start = 0;
    for (let i = 0; i < ends.length; i++) {
      const end = ends[i] ?? 0;
      if (end < start) throw new RangeError(`message ${i} ends at ${end}, before it begins at ${start}`);
      start = end;
    }
    if (start > input.length)
      throw new RangeError(`the last message ends at ${start}, past the ${input.length} bytes of input`);
    if (ends.length === 0) return;
    this.#kernel.hashMessages(overlap(input, output) ? input.slice(0, start) : input, ends, output);
  }

  /**
   * The root from a leaf, its position and its siblings, with nodes as in {@link Keccak.hashPairs}. Goes from the leaf
   * upwards, bit 0 of the position first: at a 0 bit the accumulator is the left child, at a 1 bit the right one.
   *
   * @param leaf - 32 bytes
   * @param position - 0 to 2^32 - 1
   * @param siblings - 32 bytes a level, packed, at most 32
   * @returns a new array of 32 bytes; the leaf itself when there are no siblings
   */
  foldPath(leaf: Uint8Array, position: number, siblings: Uint8Array, prefix = NODE_PREFIX): Uint8Array<ArrayBuffer> {
    if (leaf.length !== 32) throw new RangeError(`leaf must be 32 bytes, got ${leaf.length}`);
    requireInteger("position", position, 2 ** 32 - 1);
    requireInteger("number of siblings", siblings.length / 32, MAX_PATH);
    requireInteger("prefix", prefix, 0xff);
    if (siblings.length === 0) return Uint8Array.from(leaf);
    return this.#kernel.foldPath(leaf, position, siblings, prefix);
  }
}

/**
 * A new instance of an implementation, by default the fastest.
 *
 * @throws Error when the runtime does not support it
 */
export function createKeccak(name?: KeccakName): Keccak {
  const wasm = name === "noble" ? null : wasmKernel();
  if (wasm === null && name === "wasm") throw new Error("this runtime cannot run the WebAssembly of keccak-256");
  return new Keccak(wasm ?? nobleKernel());
}

let shared: Keccak | undefined;

/** The shared instance of this process, created at first use. */
export function keccak(): Keccak {
  shared ??= createKeccak();
  return shared;
}

/**
 * {@link Keccak.keccak256} of the shared instance.
 *
 * @example
 * const dataHash = bytesToHex(keccak256(data));
 */
export function keccak256(message: Uint8Array): Uint8Array<ArrayBuffer> {
  return keccak().keccak256(message);
}

/** {@link Keccak.hashPairs} of the shared instance. */
export function hashPairs(input: Uint8Array, output: Uint8Array, count?: number, prefix?: number): void {
  keccak().hashPairs(input, output, count, prefix);
}

/** {@link Keccak.hashMessages} of the shared instance. */
export function hashMessages(input: Uint8Array, ends: Uint32Array, output: Uint8Array): void {
  keccak().hashMessages(input, ends, output);
}

/** {@link Keccak.foldPath} of the shared instance. */
export function foldPath(leaf: Uint8Array, position: number, siblings: Uint8Array): Uint8Array<ArrayBuffer> {
  return keccak().foldPath(leaf, position, siblings);
}

function requireInteger(name: string, value: number, max: number): void {
  if (!Number.isInteger(value) || value < 0 || value > max) {
    throw new RangeError(`${name} must be a whole number from 0 to ${max}, got ${value}`);
  }
}

function overlap(a: Uint8Array, b: Uint8Array): boolean {
  return a.buffer === b.buffer && a.byteOffset < b.byteOffset + b.length && b.byteOffset < a.byteOffset + a.length;
}
